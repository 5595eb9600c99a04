//! The order in which gates can be evaluated once each, or the loop that forbids it.
//!
//! Kahn's algorithm: a gate is ready when all gates it reads are. What never gets ready reads a
//! loop or is in one, and each of those reads another of them, so walking backwards from any of
//! them must enter a loop. Linear, and without recursion: a circuit may be a million gates deep.

use super::gate::Kind;
use super::netlist::{Driver, Net};

/// Every gate after the gates it reads, and the number of gates on the longest path; or the nets of
/// a loop in the direction of the signal, the lowest first.
pub(super) fn levelize(drivers: &[Driver]) -> Result<(Vec<Net>, usize), Vec<Net>> {
    let is_gate = |net: Net| matches!(drivers[net as usize].kind, Kind::Gate(_));
    let mut readers: Vec<Vec<Net>> = vec![Vec::new(); drivers.len()];
    let mut missing = vec![0_u32; drivers.len()];
    let mut ready: Vec<(Net, usize)> = Vec::new();
    let mut gates = 0;
    for (net, driver) in (0..).zip(drivers) {
        if !is_gate(net) {
            continue;
        }
        gates += 1;
        for &input in driver.inputs.iter().filter(|&&input| is_gate(input)) {
            readers[input as usize].push(net);
            missing[net as usize] += 1;
        }
        if missing[net as usize] == 0 {
            ready.push((net, 1));
        }
    }

    let mut order = Vec::with_capacity(gates);
    let mut next = 0;
    let mut depth = 0;
    // First in, first out: a gate is appended by the deepest gate that it reads. So its level is
    // one more than the level of that gate.
    while let Some(&(net, level)) = ready.get(next) {
        next += 1;
        depth = depth.max(level);
        order.push(net);
        for &reader in &readers[net as usize] {
            missing[reader as usize] -= 1;
            if missing[reader as usize] == 0 {
                ready.push((reader, level + 1));
            }
        }
    }
    if order.len() == gates {
        return Ok((order, depth));
    }
    Err(find_loop(drivers, |net| is_gate(net) && missing[net as usize] > 0))
}

/// A loop among the `stuck` gates, each of which reads at least one of them.
fn find_loop(drivers: &[Driver], stuck: impl Fn(Net) -> bool) -> Vec<Net> {
    const UNSEEN: usize = usize::MAX;
    let mut seen_at = vec![UNSEEN; drivers.len()];
    let mut path: Vec<Net> = Vec::new();
    let mut here = (0..drivers.len() as Net).find(|&net| stuck(net));
    while let Some(net) = here {
        if seen_at[net as usize] != UNSEEN {
            path.drain(..seen_at[net as usize]);
            break;
        }
        seen_at[net as usize] = path.len();
        path.push(net);
        here = drivers[net as usize].inputs.iter().copied().find(|&input| stuck(input));
    }
    path.reverse();
    if let Some(lowest) = (0..path.len()).min_by_key(|&index| path[index]) {
        path.rotate_left(lowest);
    }
    path
}
