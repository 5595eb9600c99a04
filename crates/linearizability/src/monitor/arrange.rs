//! An order of the calls of distinct values, and of those that find the container empty.
//!
//! A value is *surely* there from the end of its push to the beginning of its pop. A slot is *free*
//! if no value is surely there.
//!
//! # The container can be empty in each free slot
//!
//! Let *t* be a free slot. Each value is either *early* (both calls can take effect up to *t*), or
//! *late* (both can take effect from *t* on), or both. If the history has an order, so have the
//! early values alone and the others alone, because an order of a container without all calls of a
//! value is one of the container. The order of the early values followed by that of the others
//! keeps to time: an early call begins by *t*, a late one ends after *t*. The early values are all
//! popped by then. So there is an order in which the container is empty at *t*, and the calls that
//! find it empty and can take effect in *t* go there. A call that finds it empty and has no free
//! slot is impossible.
//!
//! So the values are put into groups by the first free slot from which on they can be popped, and
//! each group is arranged for itself.
//!
//! # A group of a queue
//!
//! The value that goes first is one of which neither call has to come after the same call of
//! another value. If there is an order, its first value is such a one. Conversely, any sequence of
//! values of which each goes first among the rest gives an order: each call takes effect as early
//! as its own beginning and those of its predecessors in the sequence allow. No call is late then,
//! because a call that ended before would have been a predecessor's successor.
//!
//! # A group of a stack
//!
//! Values that can be pushed and popped in the free slot that ends the group are put there, one
//! after another. If the rest has an order, then the container is not empty within it. So its
//! first value is at the bottom all the time and is popped last. A value can be put there if its
//! push does not have to come after another call, and its pop does not have to come before one. It
//! then goes around an order of the others. They have an order if all together have one. The others
//! are a history of their own, with groups of their own.
//!
//! # A priority queue
//!
//! Let *m* be the greatest value. It disturbs no other value. It is popped when no other value is
//! there, so in a slot that is free of the others. Conversely, if there is such a slot from the
//! beginning of its pop on, and the others have an order, then they have one in which the container
//! is empty in this slot, and *m* can be popped there. So value by value, the least first: the pop
//! takes effect in the first slot that is free of smaller values, and the push in the last possible
//! slot before it. A value is then there only in slots in which it, or a smaller value, surely is.
//! In a bag no value is smaller than another.
//!
//! # Sources
//!
//! Gibbons, Bruno and Phillips, "Black-Box Correctness Tests for Basic Parallel Data Structures",
//! Theory of Computing Systems 2002; Henzinger, Sezgin and Vafeiadis, "Aspect-Oriented
//! Linearizability Proofs", CONCUR 2013 (the queue); Lee and Mathur, "Efficient
//! Decrease-and-Conquer Linearizability Monitoring", 2025 (values that can be removed without a
//! change of the answer).

use std::collections::{BTreeMap, BTreeSet};

use super::{Other, Value};
use crate::specification::container::Order;

/// Returns an order of all calls, as positions in the history; `None` if there is none.
pub(super) fn arrange(order: Order, values: &[Value], empty: &[Other]) -> Option<Vec<usize>> {
    match order {
        Order::Oldest => in_groups(values, empty, |group| queue(values, group)),
        Order::Newest => in_groups(values, empty, |group| stack(values, group)),
        Order::Smallest | Order::Any => priority_queue(order, values, empty),
    }
}

/// The slots that are not free, as ranges from the first to before the last that do not touch.
#[derive(Default)]
struct Cover(Vec<(usize, usize)>);

impl Cover {
    /// The slots in which one of `values` surely is.
    fn of<'v>(values: impl IntoIterator<Item = &'v Value>) -> Self {
        let mut ranges: Vec<_> = values.into_iter().filter_map(Value::surely).collect();
        ranges.sort_unstable();
        let mut cover = Self::default();
        ranges.into_iter().for_each(|range| cover.insert(range));
        cover
    }

    fn insert(&mut self, (begin, end): (usize, usize)) {
        let first = self.0.partition_point(|range| range.1 < begin);
        let last = self.0.partition_point(|range| range.0 <= end);
        let joined = &self.0[first..last];
        let begin = joined.first().map_or(begin, |range| range.0.min(begin));
        let end = joined.last().map_or(end, |range| range.1.max(end));
        self.0.splice(first..last, [(begin, end)]);
    }

    /// The first free slot from `slot` on.
    fn first_free(&self, slot: usize) -> usize {
        let next = self.0.partition_point(|range| range.1 <= slot);
        self.0.get(next).filter(|range| range.0 <= slot).map_or(slot, |range| range.1)
    }
}

/// The values of `group` by the free slot that ends their group.
fn groups(values: &[Value], group: &[usize]) -> BTreeMap<usize, Vec<usize>> {
    let cover = Cover::of(group.iter().map(|value| &values[*value]));
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &value in group {
        groups.entry(cover.first_free(values[value].pop.0)).or_default().push(value);
    }
    groups
}

/// Arranges group by group, and puts the calls of `empty` between them.
fn in_groups(
    values: &[Value],
    empty: &[Other],
    arrange: impl Fn(Vec<usize>) -> Option<Vec<usize>>,
) -> Option<Vec<usize>> {
    let all: Vec<_> = (0..values.len()).collect();
    let cover = Cover::of(values);
    // By the slot in which the group ends, and the calls on an empty container after the group.
    let mut parts = BTreeMap::new();
    for (slot, group) in groups(values, &all) {
        parts.insert((slot, false), arrange(group)?);
    }
    for call in empty {
        let slot = cover.first_free(call.begin);
        if slot >= call.end {
            return None;
        }
        parts.entry((slot, true)).or_default().push(call.position);
    }
    Some(parts.into_values().flatten().collect())
}

/// The two least of a set of numbers with their owners.
struct Least([(usize, usize); 2]);

impl Least {
    fn of(numbers: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut least = [(usize::MAX, usize::MAX); 2];
        for number in numbers {
            if number < least[0] {
                least = [number, least[0]];
            } else if number < least[1] {
                least[1] = number;
            }
        }
        Self(least)
    }

    /// The least number that is not this owner's.
    fn without(&self, owner: usize) -> usize {
        if self.0[0].1 == owner { self.0[1].0 } else { self.0[0].0 }
    }
}

/// Arranges a group of a queue.
fn queue(values: &[Value], mut group: Vec<usize>) -> Option<Vec<usize>> {
    group.sort_unstable_by_key(|value| values[*value].push.0);
    let ends = |end: fn(&Value) -> usize| -> BTreeSet<_> {
        group.iter().map(|value| (end(&values[*value]), *value)).collect()
    };
    let mut push_ends = ends(|value| value.push.1);
    let mut pop_ends = ends(|value| value.pop.1);
    // The slot, whether it is a pop, the position in the sequence, and the call.
    let mut moments = Vec::new();
    let (mut push_slot, mut pop_slot) = (0, 0);
    for position in 0..group.len() {
        let push_end = Least::of(push_ends.iter().take(2).copied());
        let pop_end = Least::of(pop_ends.iter().take(2).copied());
        let begun = group.iter().take_while(|value| values[**value].push.0 < push_end.0[1].0);
        let goes_first = |value: &usize| {
            values[*value].push.0 < push_end.without(*value)
                && values[*value].pop.0 < pop_end.without(*value)
        };
        let first = begun.copied().position(|value| goes_first(&value))?;
        let first = group.remove(first);
        let value = &values[first];
        push_ends.remove(&(value.push.1, first));
        pop_ends.remove(&(value.pop.1, first));
        push_slot = push_slot.max(value.push.0);
        pop_slot = pop_slot.max(value.pop.0);
        moments.push((push_slot, false, position, value.pushed_by));
        moments.push((pop_slot, true, position, value.popped_by));
    }
    moments.sort_unstable();
    Some(moments.into_iter().filter_map(|moment| moment.3).collect())
}

/// Arranges a group of a stack.
fn stack(values: &[Value], group: Vec<usize>) -> Option<Vec<usize>> {
    /// A task that is left to do. The next one is the last of its vector.
    enum Task {
        Arrange(Vec<usize>),
        Emit(Option<usize>),
    }
    let mut order = Vec::new();
    let mut tasks = vec![Task::Arrange(group)];
    while let Some(task) = tasks.pop() {
        let group = match task {
            Task::Emit(call) => {
                order.extend(call);
                continue;
            }
            Task::Arrange(group) => group,
        };
        for (slot, group) in groups(values, &group).into_iter().rev() {
            let floats = |value: &usize| values[*value].push.1 > slot;
            let (floating, rest): (Vec<_>, Vec<_>) = group.into_iter().partition(floats);
            for value in floating {
                tasks.push(Task::Emit(values[value].popped_by));
                tasks.push(Task::Emit(values[value].pushed_by));
            }
            if rest.is_empty() {
                continue;
            }
            let ends = Least::of(rest.iter().map(|value| (values[*value].push.1, *value)));
            // The greatest are the least when they are counted down.
            let down = |slot: usize| usize::MAX - slot;
            let begins = Least::of(rest.iter().map(|value| (down(values[*value].pop.0), *value)));
            let encloses = |value: &usize| {
                values[*value].push.0 < ends.without(*value)
                    && down(values[*value].pop.1) < begins.without(*value)
            };
            let bottom = *rest.iter().find(|value| encloses(value))?;
            let inner = rest.into_iter().filter(|value| *value != bottom).collect();
            tasks.push(Task::Emit(values[bottom].popped_by));
            tasks.push(Task::Arrange(inner));
            tasks.push(Task::Emit(values[bottom].pushed_by));
        }
    }
    Some(order)
}

/// Arranges a priority queue, or a bag.
fn priority_queue(order: Order, values: &[Value], empty: &[Other]) -> Option<Vec<usize>> {
    let mut ascending: Vec<_> = values.iter().collect();
    ascending.sort_unstable_by_key(|value| value.number);
    let mut smaller = Cover::default();
    // The slot; in it first the pops of what was pushed before, the smallest first, then values
    // that are pushed and popped at once, then calls on the empty container, then the other pushes.
    let mut moments = Vec::new();
    for value in ascending {
        let pop = smaller.first_free(value.pop.0);
        if pop >= value.pop.1 {
            return None;
        }
        let push = pop.min(value.push.1 - 1);
        let [push_phase, pop_phase] = if push == pop { [1, 1] } else { [3, 0] };
        moments.push((push, push_phase, value.number, false, value.pushed_by));
        moments.push((pop, pop_phase, value.number, true, value.popped_by));
        if let (Order::Smallest, Some(range)) = (order, value.surely()) {
            smaller.insert(range);
        }
    }
    let all = Cover::of(values);
    for call in empty {
        let slot = all.first_free(call.begin);
        if slot >= call.end {
            return None;
        }
        moments.push((slot, 2, call.position, false, Some(call.position)));
    }
    moments.sort_unstable();
    Some(moments.into_iter().filter_map(|moment| moment.4).collect())
}
