//! Containers with distinct values: an order of the calls in polynomial time.
//!
//! If each value is pushed once, a pop says which push it belongs to. Then a queue, a stack or a
//! priority queue is checked value by value, not call by call (`monitor/arrange.rs`). Three kinds
//! of calls do not fit, and are put on top of that:
//!
//! - A call that finds the container empty. A moment at which no value has to be in the container
//!   explains it; `arrange` looks for one.
//! - A call that finds it not empty. A value that is there during the call explains it. The call is
//!   put next to that value, if the order of the other calls has such a place. If not, each value
//!   that may be there is tried: the push has to come before the end of the call, and the pop after
//!   its beginning.
//! - A pop that has not returned. It did nothing, or it took a value that must not stay. If there
//!   is no order, the monitor looks for a smallest set of values without an order. It tries each
//!   value of that set that no other call pops.
//!
//! Only the tries can take long, and only if many such calls need each other's values. They are
//! paid for from the budget.

mod arrange;

use crate::budget::{Purse, Spent};
use crate::minimize::minimize;
use crate::specification::container::{Container, Kind};

use arrange::arrange;

/// The monitor's answer for a history of a container.
pub(crate) enum Answer {
    /// The container allows this order, as positions in the history.
    Order(Vec<usize>),
    /// The container allows no order.
    Impossible,
    /// The values are not distinct, or the budget is spent.
    Unknown,
}

/// The calls of one value, by the slots in which they can take effect.
///
/// Beginnings and ends are numbered in the order in which they happen. Slot *n* is the time between
/// event *n* and the next one. A call that begins with event 3 and ends with event 7 takes effect
/// in one of the slots 3 to 6.
#[derive(Clone, Copy, Debug)]
struct Value {
    /// The first slot of the push, and the first after it.
    push: (usize, usize),
    /// The first slot of the pop, and the first after it.
    pop: (usize, usize),
    /// The position of the push; none if the value is there at first.
    pushed_by: Option<usize>,
    /// The position of the pop; none if the value stays.
    popped_by: Option<usize>,
    /// The number of the value, which is its rank in a priority queue.
    number: usize,
}

impl Value {
    /// Takes off what the push and the pop leave each other no time for; `None` if nothing is left.
    fn tightened(self) -> Option<Self> {
        let push = (self.push.0, self.push.1.min(self.pop.1));
        let pop = (self.pop.0.max(self.push.0), self.pop.1);
        (push.0 < push.1 && pop.0 < pop.1).then_some(Self { push, pop, ..self })
    }

    /// The slots in which the value is there whatever the order is: from the first to before the
    /// last.
    fn surely(&self) -> Option<(usize, usize)> {
        (self.push.1 < self.pop.0).then_some((self.push.1, self.pop.0))
    }
}

/// A call that concerns no value of its own.
#[derive(Clone, Copy, Debug)]
struct Other {
    /// Its index in the history.
    position: usize,
    /// The first slot in which it can take effect.
    begin: usize,
    /// The first slot after it.
    end: usize,
}

/// A history by slots.
struct Monitor<'c> {
    /// The history, and what the container gives away.
    container: &'c Container,
    /// The slots of each call, by position.
    slots: Vec<(usize, usize)>,
    /// The slot after the last event, in which values are popped that stay.
    forever: usize,
    /// The calls that find the container empty.
    empty: Vec<Other>,
}

/// Looks for an order of the calls that the container allows.
pub(crate) fn explain(container: &Container, purse: &mut Purse) -> Answer {
    let monitor = Monitor::new(container);
    let Some(Values { values, distinct }) = monitor.values() else { return Answer::Impossible };
    let claims = monitor.others(Kind::NotEmpty);
    let pops = monitor.others(Kind::Unfinished);
    match monitor.explain(&values, &pops, &claims, purse) {
        Ok(Some(order)) => Answer::Order(order),
        Ok(None) if distinct => Answer::Impossible,
        Ok(None) | Err(Spent) => Answer::Unknown,
    }
}

/// The values of a history.
struct Values {
    /// The values that are pushed or popped.
    values: Vec<Value>,
    /// Each is pushed once. If not, it is a guess which push a pop belongs to.
    distinct: bool,
}

impl<'c> Monitor<'c> {
    fn new(container: &'c Container) -> Self {
        let calls = &container.calls;
        let mut events: Vec<_> =
            calls.iter().enumerate().map(|(n, call)| (call.begin, false, n)).collect();
        let ended = calls.iter().enumerate().filter(|(_, call)| call.end != u64::MAX);
        // Beginnings come first among equals: calls that touch overlap.
        events.extend(ended.map(|(position, call)| (call.end, true, position)));
        events.sort_unstable();
        // Values that are there at first have been pushed one after another.
        let before = 2 * container.initial.len();
        let forever = before + events.len();
        let mut slots = vec![(0, forever + 1); calls.len()];
        for (number, (_, is_end, position)) in events.into_iter().enumerate() {
            let slot = if is_end { &mut slots[position].1 } else { &mut slots[position].0 };
            *slot = before + number;
        }
        let mut monitor = Self { container, slots, forever, empty: Vec::new() };
        monitor.empty = monitor.others(Kind::Empty);
        monitor
    }

    /// The calls of a kind that names no value.
    fn others(&self, kind: Kind) -> Vec<Other> {
        let calls = self.container.calls.iter().zip(&self.slots).enumerate();
        calls
            .filter(|(_, (call, _))| call.kind == kind)
            .map(|(position, (_, &(begin, end)))| Other { position, begin, end })
            .collect()
    }

    /// The values; `None` if a call is impossible for itself.
    fn values(&self) -> Option<Values> {
        let mut pushes = vec![Vec::new(); self.container.values];
        let mut pops = pushes.clone();
        for (number, value) in self.container.initial.iter().enumerate() {
            pushes[*value].push((None, (2 * number, 2 * number + 1)));
        }
        for (position, call) in self.container.calls.iter().enumerate() {
            let entry = (Some(position), self.slots[position]);
            match call.kind {
                Kind::Push(value) => pushes[value].push(entry),
                Kind::Pop(value) => pops[value].push(entry),
                Kind::Impossible => return None,
                _ => {}
            }
        }
        let mut values = Vec::new();
        let mut distinct = true;
        for (number, (pushes, pops)) in pushes.into_iter().zip(pops).enumerate() {
            if pops.len() > pushes.len() {
                return None;
            }
            distinct &= pushes.len() <= 1;
            let stays = (None, (self.forever, self.forever + 1));
            let pops = pops.into_iter().chain(std::iter::repeat(stays));
            for ((pushed_by, push), (popped_by, pop)) in pushes.into_iter().zip(pops) {
                let value = Value { push, pop, pushed_by, popped_by, number };
                match value.tightened() {
                    Some(value) => values.push(value),
                    None if distinct => return None,
                    None => {}
                }
            }
        }
        Some(Values { values, distinct })
    }

    /// Finds an order of the values' calls, of those on an empty container and of `claims`. Each of
    /// `pops` takes one of the values that stay, or has no effect.
    fn explain(
        &self,
        values: &[Value],
        pops: &[Other],
        claims: &[Other],
        purse: &mut Purse,
    ) -> Result<Option<Vec<usize>>, Spent> {
        let Some(order) = self.arrange(values, purse)? else {
            return self.explain_by_pops(values, pops, claims, purse);
        };
        let unplaced = match self.place(&order, claims) {
            Ok(order) => return Ok(Some(order)),
            Err(unplaced) => unplaced,
        };
        if claims.len() > 1 {
            // One that cannot be explained for itself cannot be with the others.
            for claim in &unplaced {
                if self.explain(values, pops, &[*claim], purse)?.is_none() {
                    return Ok(None);
                }
            }
        }
        let Some(claim) = unplaced.first() else { return Ok(None) };
        let mut tries: Vec<_> = (0..values.len())
            .filter(|value| values[*value].push.0 < claim.end && values[*value].pop.1 > claim.begin)
            .collect();
        // Those first that lose the least.
        tries.sort_by_key(|value| {
            let value = &values[*value];
            value.push.1.saturating_sub(claim.end) + claim.begin.saturating_sub(value.pop.0)
        });
        for value in tries {
            let mut values = values.to_vec();
            let tried = &mut values[value];
            tried.push.1 = tried.push.1.min(claim.end);
            tried.pop.0 = tried.pop.0.max(claim.begin);
            if let Some(order) = self.explain(&values, pops, claims, purse)? {
                return Ok(Some(order));
            }
        }
        Ok(None)
    }

    /// As `explain`, when there is no order unless one of `pops` takes a value.
    fn explain_by_pops(
        &self,
        values: &[Value],
        pops: &[Other],
        claims: &[Other],
        purse: &mut Purse,
    ) -> Result<Option<Vec<usize>>, Spent> {
        if pops.is_empty() {
            return Ok(None);
        }
        let all: Vec<_> = (0..values.len()).collect();
        let mut spent = Ok(());
        let core = minimize(all, |some| {
            let some: Vec<_> = some.iter().map(|value| values[*value]).collect();
            match self.arrange(&some, purse) {
                Ok(order) => order.is_none(),
                Err(error) => {
                    spent = Err(error);
                    false
                }
            }
        });
        spent?;
        // One of these does not stay, or there is no order.
        for value in core.into_iter().filter(|value| values[*value].pop.0 == self.forever) {
            for (taken, pop) in pops.iter().enumerate() {
                let mut values = values.to_vec();
                let slots = (pop.begin, self.forever + 1);
                let tried = Value { pop: slots, popped_by: Some(pop.position), ..values[value] };
                let Some(tried) = tried.tightened() else { continue };
                values[value] = tried;
                let mut pops = pops.to_vec();
                pops.remove(taken);
                if let Some(order) = self.explain(&values, &pops, claims, purse)? {
                    return Ok(Some(order));
                }
            }
        }
        Ok(None)
    }

    fn arrange(&self, values: &[Value], purse: &mut Purse) -> Result<Option<Vec<usize>>, Spent> {
        purse.steps(8 * (values.len() + self.empty.len()))?;
        Ok(arrange(self.container.order, values, &self.empty))
    }

    /// Puts `claims` into `order`, each where the container is not empty. Returns those for which
    /// there is no such place.
    ///
    /// Each goes to the first place that time allows. Two claims of which one comes before the
    /// other keep to that: what is allowed to the later one and comes first is allowed to both.
    fn place(&self, order: &[usize], claims: &[Other]) -> Result<Vec<usize>, Vec<Other>> {
        // How many values there are after each beginning of the order.
        let mut present = vec![self.container.initial.len()];
        for position in order {
            let before = present[present.len() - 1];
            present.push(match self.container.calls[*position].kind {
                Kind::Push(_) => before + 1,
                Kind::Pop(_) | Kind::Unfinished => before - 1,
                _ => before,
            });
        }
        let mut unplaced = Vec::new();
        let mut places = Vec::new();
        for claim in claims {
            let slots = order.iter().map(|position| self.slots[*position]);
            let after = slots.clone().rposition(|(_, end)| end < claim.begin);
            let before = slots.clone().position(|(begin, _)| begin > claim.end);
            let range = after.map_or(0, |after| after + 1)..=before.unwrap_or(order.len());
            match range.into_iter().find(|place| present[*place] > 0) {
                Some(place) => places.push((place, claim.begin, claim.position)),
                None => unplaced.push(*claim),
            }
        }
        if !unplaced.is_empty() {
            return Err(unplaced);
        }
        places.sort_unstable();
        let mut places = places.into_iter().peekable();
        let mut whole = Vec::with_capacity(order.len() + claims.len());
        for place in 0..=order.len() {
            while let Some((_, _, claim)) = places.next_if(|next| next.0 == place) {
                whole.push(claim);
            }
            whole.extend(order.get(place));
        }
        Ok(whole)
    }
}
