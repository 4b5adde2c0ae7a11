//! What became of what an exporter sent, as numbers.

/// What became of what an exporter sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Datagrams.
    pub datagrams: u64,
    /// Those of them that contradict themselves, in whole or behind what was understood.
    pub malformed: u64,
    /// Records of flows: those that were counted and those without addresses.
    pub records: u64,
    /// Records that were counted.
    pub counted: u64,
    /// Records that do not say who spoke to whom.
    pub without_addresses: u64,
    /// Records of options, such as the rate of sampling.
    pub options: u64,
    /// Templates that were sent, again and again.
    pub templates: u64,
    /// Sets of records that wait for their template.
    pub waiting: u64,
    /// Sets that waited and were counted when it came.
    pub replayed: u64,
    /// Sets whose template did not come in time or at all, for which there was no room, or that did
    /// not fit the template.
    pub given_up: u64,
    /// Sets that are not understood.
    pub not_understood: u64,
    /// Records that came and were not counted, as far as the numbers in the datagrams tell: of sets
    /// that wait, were given up or are not understood. In IPFIX, also those lost just behind them.
    pub unexplained: u64,
    /// Records that were sent and did not arrive, by the numbers in the datagrams.
    pub records_lost: u64,
    /// Datagrams, in the same way: NetFlow 9 numbers those.
    pub datagrams_lost: u64,
    /// Datagrams that came late, or with numbers that began again.
    pub out_of_order: u64,
    /// Packets, sampling made up for.
    pub packets: u64,
    /// Bytes from the IP header on, sampling made up for.
    pub bytes: u64,
    /// Records of TCP without its flags: handshakes are not known.
    pub without_flags: u64,
    /// Records without a number of packets.
    pub without_packets: u64,
    /// Records that stand for more than was counted, because of sampling.
    pub estimated: u64,
}

impl Counts {
    /// Both together.
    pub fn add(&mut self, other: &Counts) {
        let mut other = *other;
        for (mine, theirs) in self.all_mut().into_iter().zip(other.all_mut()) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    /// What has come since then.
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

    /// What the ledger says of them.
    pub(super) fn list(&self) -> [(&'static str, u64); 12] {
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
        ]
    }
}
