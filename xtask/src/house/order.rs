//! The order of rooms of a crate, and the imports against it.
//!
//! `xtask/rooms.txt` names the rooms of each crate from top to bottom. A room imports rooms below
//! it. Every room has a place, and every place a room.

use std::collections::BTreeMap;

use super::modules::{Imports, Module};
use super::places::{Place, Places};
use crate::failure::{Failure, Result};
use crate::shell;

const ORDER: &str = "xtask/rooms.txt";

/// For each crate its rooms, the highest first; those of one level in one list.
pub(crate) type Orders = BTreeMap<String, Vec<Vec<String>>>;

/// Returns the committed orders.
pub(crate) fn committed() -> Result<Orders> {
    let path = shell::root().join(ORDER);
    let text = std::fs::read_to_string(&path).map_err(Failure::file(&path))?;
    parse(&text).map_err(|why| Failure::verdict(format!("{ORDER}: {why}")))
}

fn parse(text: &str) -> std::result::Result<Orders, String> {
    let mut orders = Orders::new();
    let mut name = None;
    for (number, line) in text.lines().enumerate() {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let rooms = if line.starts_with(' ') {
            line
        } else {
            let (head, rooms) = line.split_once(':').ok_or_else(|| {
                format!("line {}: neither `CRATE: ROOMS` nor indented", number + 1)
            })?;
            name = Some(head.trim().to_owned());
            rooms
        };
        let of = name.clone().ok_or_else(|| format!("line {}: rooms of no crate", number + 1))?;
        let levels =
            rooms.split_whitespace().map(|level| level.split('+').map(str::to_owned).collect());
        orders.entry(of).or_default().extend(levels.collect::<Vec<Vec<String>>>());
    }
    Ok(orders)
}

/// Returns the imports of a crate that do not lead down, the rooms without a place, and the places
/// without a room.
pub(crate) fn upward(name: &str, imports: &Imports, order: &[Vec<String>]) -> Places {
    let level = |module: &Module| {
        let room = module.first()?;
        order.iter().position(|level| level.contains(room))
    };
    let mut places = Places::new();
    let mut complain = |why: String| places.push(Place::new(&format!("crates/{name}"), 0, why));
    let mut rooms: Vec<&String> = imports.keys().filter_map(|module| module.first()).collect();
    rooms.dedup();
    for room in &rooms {
        if !order.iter().flatten().any(|placed| placed == *room) {
            complain(format!("the room `{room}` has no place in {ORDER}"));
        }
    }
    for placed in order.iter().flatten() {
        if !rooms.contains(&placed) {
            complain(format!("there is no room `{placed}`, which {ORDER} names"));
        }
    }
    for (module, others) in imports {
        for other in others {
            let (Some(from), Some(to)) = (level(module), level(other)) else { continue };
            if to <= from && module.first() != other.first() {
                complain(format!("{} imports {}: upward", module.join("::"), other.join("::")));
            }
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::super::modules::Crate;
    use super::*;

    fn against(order: &str) -> Vec<String> {
        let files = [
            ("lib.rs", "pub use crate::low::x::X;"),
            ("api.rs", ""),
            ("api/scope.rs", "use crate::{X, sync::Y};"),
            ("sync.rs", "use crate::low::Z;"),
            ("low/mod.rs", "use self::x::X; use crate::api::scope::S;"),
            ("low/x.rs", ""),
        ];
        let orders = parse(order).unwrap();
        let places = upward("a", &Crate::new(files).imports(), &orders["a"]);
        places
            .iter()
            .map(|place| place.to_string().split(": ").skip(1).collect::<Vec<_>>().join(": "))
            .collect()
    }

    #[test]
    fn an_import_leads_down() {
        assert_eq!(against("# no\na: api sync\n  low\n"), ["low imports api::scope: upward"]);
        assert_eq!(
            against("a: low sync api"),
            [
                "api::scope imports low::x: upward",
                "api::scope imports sync: upward",
                "sync imports low: upward"
            ]
        );
    }

    #[test]
    fn rooms_side_by_side_do_not_import_each_other() {
        assert_eq!(
            against("a: api+sync low"),
            ["api::scope imports sync: upward", "low imports api::scope: upward"]
        );
    }

    #[test]
    fn every_room_has_a_place_and_every_place_a_room() {
        assert_eq!(
            against("a: api gone low"),
            [
                "the room `sync` has no place in xtask/rooms.txt",
                "there is no room `gone`, which xtask/rooms.txt names",
                "low imports api::scope: upward"
            ]
        );
    }

    #[test]
    fn an_order_that_names_no_crate_is_refused() {
        assert!(parse(" api").is_err() && parse("api sync").is_err());
    }
}
