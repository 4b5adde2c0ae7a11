//! The feature `serde`: structures as checked bytes, shapes as maps.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, from_value, json, to_value};
use sidon::{
    Malformed, Seed,
    count::{Distinct, FanOut, Min, Periods, Prefixes, Top, min, prefixes, top},
    decide::Suspects,
    plan,
    saved::{Save, Saved},
    set::{
        AnySet, Backyard, Bh, Blocked, Bloom, Counting, DLeft, Elastic, Multilayer, Variable,
        backyard, bh, blocked, bloom, counting, dleft, elastic, multilayer, variable,
    },
    state::{Direct, Fingerprint, Stateful, direct, fingerprint, stateful},
    zone::{self, Adaptive, Any, Filter, Hosts, Sketch, Subnets, subnets},
};
use std::fmt::Debug;

/// The seed of the golden files.
const SEED: Seed = Seed(0x5eed);

/// A structure comes back from JSON and from postcard, and no damaged byte is accepted.
fn is_saved<S: Save + Serialize>(image: &[u8]) {
    let structure = S::from_bytes(image, SEED).unwrap();
    let json = serde_json::to_string(&structure).unwrap();
    let binary = postcard::to_allocvec(&structure).unwrap();
    assert_eq!(json.len(), 2 * image.len() + 2);
    assert!(binary.ends_with(image) && binary.len() <= image.len() + 4);

    let saved: Saved<S> = serde_json::from_str(&json).unwrap();
    let from_binary: Saved<S> = postcard::from_bytes(&binary).unwrap();
    for saved in [&saved, &from_binary, &Saved::new(&structure)] {
        assert_eq!(saved.open(SEED).unwrap().to_bytes(), image);
        assert_eq!(serde_json::to_string(saved).unwrap(), json);
        assert_eq!(postcard::to_allocvec(saved).unwrap(), binary);
    }

    let front = binary.len() - image.len();
    for at in front..binary.len() {
        let mut damaged = binary.clone();
        damaged[at] ^= 0x10;
        assert!(postcard::from_bytes::<Saved<S>>(&damaged).is_err(), "byte {at}");
        assert!(postcard::from_bytes::<Saved<S>>(&binary[..at]).is_err(), "cut at {at}");
    }
}

fn golden(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/golden/{name}.sidon", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|why| panic!("{path}: {why}"))
}

#[test]
fn every_structure_comes_back_and_no_damaged_byte_is_accepted() {
    is_saved::<Bloom>(&golden("bloom"));
    is_saved::<AnySet>(&golden("bloom"));
    is_saved::<AnySet>(&golden("dleft"));
    let mut hosts = Hosts::new(256).unwrap();
    hosts.add(&7, 3).unwrap();
    is_saved::<Hosts>(&hosts.to_bytes());
    is_saved::<Blocked>(&golden("blocked"));
    is_saved::<Counting>(&golden("counting"));
    is_saved::<Variable>(&golden("variable"));
    is_saved::<Bh>(&golden("bh"));
    is_saved::<Multilayer>(&golden("multilayer"));
    is_saved::<DLeft>(&golden("dleft"));
    is_saved::<Elastic>(&golden("elastic"));
    is_saved::<Fingerprint>(&golden("state-fingerprint-listed"));
    is_saved::<Backyard>(&golden("backyard"));
    is_saved::<Min>(&golden("min"));
    is_saved::<Top<[u8; 4], 2>>(&golden("top"));
    is_saved::<Distinct>(&golden("distinct"));
    is_saved::<FanOut<[u8; 4]>>(&golden("fan-out"));
    is_saved::<Prefixes<3>>(&golden("prefixes"));
    is_saved::<Suspects<[u8; 4]>>(&golden("suspects"));
    is_saved::<Periods<[u8; 4]>>(&golden("periods"));
    is_saved::<Direct>(&golden("state-direct"));
    is_saved::<Stateful>(&golden("state-stateful"));
    is_saved::<Fingerprint>(&golden("state-fingerprint"));
    is_saved::<Filter<Any>>(&golden("zone-filter-pol"));
    is_saved::<Sketch<Any>>(&golden("zone-sketch-egh"));
    is_saved::<Adaptive>(&golden("zone-list"));
    let shape = subnets::Shape { subnet_bits: 8, slots: 16, bitmaps: 2 };
    is_saved::<Subnets>(&Subnets::new(shape, SEED).unwrap().to_bytes());
}

#[test]
fn opening_needs_the_seed() {
    let bloom = Bloom::from_bytes(&golden("bloom"), SEED).unwrap();
    let saved: Saved<Bloom> = from_value(to_value(&bloom).unwrap()).unwrap();
    assert_eq!(saved.open(Seed(1)), Err(Malformed::Seed));
    assert_eq!(saved.open(SEED), Ok(bloom));
}

/// The message of the error, without the position that serde_json adds.
#[track_caller]
fn refused<T: DeserializeOwned + Debug>(text: &str) -> String {
    let message = serde_json::from_str::<T>(text).unwrap_err().to_string();
    message.split(" at line").next().unwrap().to_owned()
}

#[test]
fn errors_name_what_is_wrong() {
    let blocked = Blocked::from_bytes(&golden("blocked"), SEED).unwrap();
    let json = serde_json::to_string(&blocked).unwrap();
    assert_eq!(
        refused::<Saved<Bloom>>(&json),
        Malformed::Kind { expected: Bloom::KIND, got: Blocked::KIND }.to_string()
    );
    let other = json.replacen("00", "01", 1);
    assert_ne!(refused::<Saved<Blocked>>(&other), "");
    let short = format!("{}\"", &json[..json.len() - 3]);
    let (expected, got) = (json.len() as u64 / 2 - 1, json.len() as u64 / 2 - 2);
    assert_eq!(refused::<Saved<Blocked>>(&short), Malformed::Length { expected, got }.to_string());
    for text in [r#""5""#, r#""5g""#, r#""5€""#, r#""+5""#] {
        assert_eq!(
            refused::<Saved<Bloom>>(text),
            "the saved bytes of a structure are pairs of hexadecimal digits"
        );
    }
    let number = "invalid type: integer `5`, expected the saved bytes of a sidon structure";
    assert_eq!(refused::<Saved<Bloom>>("5"), number);
}

#[test]
fn debug_output_does_not_list_the_bytes() {
    let bloom = Bloom::from_bytes(&golden("bloom"), SEED).unwrap();
    let bytes = golden("bloom").len();
    let text = format!("{:?}", Saved::new(&bloom));
    assert_eq!(text, format!("Saved {{ kind: {}, bytes: {bytes} }}", Bloom::KIND));
}

/// A shape is written as this map and read back, and any other field is refused.
#[track_caller]
fn is_a_map<S: Serialize + DeserializeOwned + PartialEq + Debug>(map: Value) -> S {
    let shape: S = from_value(map.clone()).unwrap();
    assert_eq!(to_value(&shape).unwrap(), map);
    let binary = postcard::to_allocvec(&shape).unwrap();
    assert_eq!(postcard::from_bytes::<S>(&binary).unwrap(), shape);
    let mut more = map.clone();
    let fields = more.as_object_mut().unwrap();
    let missing = fields.keys().next().unwrap().clone();
    fields.insert("colour".to_owned(), json!(7));
    assert!(refused::<S>(&more.to_string()).contains("unknown field `colour`"));
    let fields = more.as_object_mut().unwrap();
    fields.remove("colour");
    fields.remove(&missing);
    assert!(refused::<S>(&more.to_string()).contains(&format!("missing field `{missing}`")));
    shape
}

#[test]
fn shapes_are_maps_of_their_fields() {
    let shape = is_a_map::<bloom::Shape>(json!({"bits": 1000, "hashes": 3}));
    assert_eq!(shape, bloom::Shape { bits: 1_000, hashes: 3 });
    is_a_map::<blocked::Shape>(json!({"lines": 9, "hashes": 8}));
    is_a_map::<counting::Shape>(json!({
        "counters": 1024, "hashes": 4, "width": 4, "overflow": "pin", "spread": {"lines": 2},
    }));
    is_a_map::<variable::Shape>(json!({
        "counters": 999, "hashes": 3, "width": 6, "increments": [4, 5, 6, 7],
        "overflow": "refuse", "spread": "anywhere",
    }));
    is_a_map::<bh::Shape>(json!({
        "cells": 999, "hashes": 3, "keys_bits": 3, "sum_bits": 5, "increments": [1, 2, 5, 14],
        "decode": {"improved": 6}, "centred": false, "overflow": "pin", "spread": "anywhere",
    }));
    is_a_map::<multilayer::Shape>(json!({
        "counters": 999, "hashes": 3, "first": 2, "rest": [4, 2, 0, 0, 0, 0, 0],
        "buckets": [5, 1, 0, 0, 0, 0, 0], "increments": [1],
        "overflow": "refuse", "spread": "anywhere",
    }));
    is_a_map::<dleft::Shape>(json!({
        "subtables": 2, "buckets": 64, "cells": 16, "width": 16, "remainder": 14, "counter": 2,
        "moves": {"search": 256}, "growths": 3, "grows": true,
    }));
    is_a_map::<backyard::Shape>(json!({"lines": 100, "sharing": 2}));
    is_a_map::<min::Shape>(json!({
        "rows": 4, "columns": 500, "width": 32, "update": "conservative", "layout": "rows",
    }));
    is_a_map::<top::Shape>(json!({"buckets": 100, "rows": 2, "columns": 400}));
    is_a_map::<prefixes::Shape>(json!({"buckets": [100, 50, 25, 12, 13]}));
    is_a_map::<direct::Shape>(json!({
        "cells": 500, "hashes": 4, "states": 3, "counter": 4, "timed": false,
    }));
    is_a_map::<stateful::Shape>(json!({
        "cells": 500, "hashes": 4, "states": 3, "keeping": {"counted": 4},
    }));
    is_a_map::<fingerprint::Shape>(json!({
        "subtables": 2, "buckets": 64, "cells": 16, "width": 32, "remainder": 20, "states": 8,
        "shared": 7, "placing": "permuted", "moves": "first", "reinsert": false, "stash": 4,
        "growths": 3, "grows": true, "listed": 5,
    }));
    is_a_map::<elastic::Shape>(json!({
        "subtables": 2, "buckets": 64, "line": 32, "least": 6, "remainder": 14, "counter": 1,
        "moves": {"search": 256}, "narrows": true,
    }));
    // Files of earlier versions have no list.
    let old = json!({
        "subtables": 2, "buckets": 64, "cells": 16, "width": 32, "remainder": 20, "states": 8,
        "shared": 7, "placing": "permuted", "moves": "first", "reinsert": false, "stash": 4,
        "growths": 3, "grows": true,
    });
    assert_eq!(from_value::<fingerprint::Shape>(old).unwrap().listed, 0);
    is_a_map::<subnets::Shape>(json!({"subnet_bits": 24, "slots": 1000, "bitmaps": 30}));
    is_a_map::<zone::egh::Shape>(json!({"universe": 60, "moduli": [4, 5, 7, 9]}));
    is_a_map::<zone::ols::Shape>(json!({"universe": 23, "order": 5, "groups": 4}));
    let pol = json!({"universe": 60, "order": 4, "digits": 3, "groups": 5, "infinity": true});
    is_a_map::<zone::pol::Shape>(pol.clone());
    let any: zone::Shape = from_value(json!({"pol": pol})).unwrap();
    assert_eq!((any.name(), any.universe()), ("pol", 60));

    // The shapes of plans have the name of the structure in front.
    let set: plan::SetShape = from_value(json!({"bloom": {"bits": 1000, "hashes": 3}})).unwrap();
    assert_eq!(set, plan::SetShape::Bloom(shape));
}

#[test]
fn a_shape_is_checked_when_it_is_used() {
    let shape: bloom::Shape = from_value(json!({"bits": 9, "hashes": 0})).unwrap();
    assert_eq!(Bloom::new(shape, SEED).unwrap_err().name(), Some("hashes"));
}

#[test]
fn increments_are_checked_when_they_are_read() {
    let read = |values: Value| from_value::<sidon::set::Increments>(values);
    assert_eq!(read(json!([7, 4])).unwrap().values(), [4, 7]);
    let all: Vec<u8> = (1..18).collect();
    for values in [json!([]), json!([0, 4]), json!([4, 4]), json!([256]), json!(all)] {
        assert!(read(values.clone()).is_err(), "{values}");
    }
}
