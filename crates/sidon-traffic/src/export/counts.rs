//! Counters of what an exporter sent.

/// Counters of the datagrams, sets and records of an exporter, by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Datagrams.
    pub datagrams: u64,
    /// Datagrams that contradict themselves, as a whole or after some readable sets.
    pub malformed: u64,
    /// Flow records: those that were counted and those without addresses.
    pub records: u64,
    /// Records that were counted.
    pub counted: u64,
    /// Records without a source or a destination address.
    pub without_addresses: u64,
    /// Options records, such as those of the sampling rate.
    pub options: u64,
    /// Templates received, repeats included.
    pub templates: u64,
    /// Sets of records that wait for their template.
    pub waiting: u64,
    /// Sets that waited and were counted when their template arrived.
    pub replayed: u64,
    /// Sets that were given up: their template did not arrive in time, they found no room, or they
    /// did not fit the template.
    pub given_up: u64,
    /// Sets that are not understood.
    pub not_understood: u64,
    /// Records that arrived but were not counted, by the sequence numbers of the datagrams: those
    /// of sets that wait, were given up or are not understood. In IPFIX, also records lost right
    /// after them.
    pub unexplained: u64,
    /// Records that were sent and did not arrive, by the sequence numbers of the datagrams.
    pub records_lost: u64,
    /// Datagrams that were sent and did not arrive: NetFlow 9 numbers datagrams, not records.
    pub datagrams_lost: u64,
    /// Datagrams that arrived late, or whose numbers started again.
    pub out_of_order: u64,
    /// Packets, multiplied by the sampling rate.
    pub packets: u64,
    /// Bytes of IP packets, headers included, multiplied by the sampling rate.
    pub bytes: u64,
    /// TCP records without TCP flags: they show no handshakes.
    pub without_flags: u64,
    /// Records without a packet count.
    pub without_packets: u64,
    /// Records whose amounts are estimates, because packets were sampled.
    pub estimated: u64,
}

impl Counts {
    /// Adds the counters of `other`.
    pub fn add(&mut self, other: &Counts) {
        let mut other = *other;
        for (mine, theirs) in self.all_mut().into_iter().zip(other.all_mut()) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    /// The counters minus their values in `before`.
    pub(super) fn since(&self, before: &Counts) -> Counts {
        let (mut since, mut before) = (*self, *before);
        for (mine, theirs) in since.all_mut().into_iter().zip(before.all_mut()) {
            *mine = mine.saturating_sub(*theirs);
        }
        since
    }

    fn all_mut(&mut self) -> [&mut u64; 20] {
        let Counts {
            datagrams,
            malformed,
            records,
            counted,
            without_addresses,
            options,
            templates,
            waiting,
            replayed,
            given_up,
            not_understood,
            unexplained,
            records_lost,
            datagrams_lost,
            out_of_order,
            packets,
            bytes,
            without_flags,
            without_packets,
            estimated,
        } = self;
        [
            datagrams,
            malformed,
            records,
            counted,
            without_addresses,
            options,
            templates,
            waiting,
            replayed,
            given_up,
            not_understood,
            unexplained,
            records_lost,
            datagrams_lost,
            out_of_order,
            packets,
            bytes,
            without_flags,
            without_packets,
            estimated,
        ]
    }

    /// The counters by name, for the ledger.
    pub(super) fn list(&self) -> [(&'static str, u64); 13] {
        [
            ("datagrams_malformed", self.malformed),
            ("records", self.records),
            ("records_without_addresses", self.without_addresses),
            ("records_of_options", self.options),
            ("sets_waiting_for_templates", self.waiting),
            ("sets_replayed", self.replayed),
            ("sets_given_up", self.given_up),
            ("sets_not_understood", self.not_understood),
            ("records_unexplained", self.unexplained),
            ("records_lost", self.records_lost),
            ("datagrams_lost", self.datagrams_lost),
            ("datagrams_out_of_order", self.out_of_order),
            ("records_estimated", self.estimated),
        ]
    }
}
