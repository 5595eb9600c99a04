//! The matrix against its own invariants, after every operation of random sequences; and examples
//! with known pictures.

use std::collections::BTreeMap;

use proptest::prelude::*;
use stanchion_gang::matrix::{
    AllocationError, Alternates, Assignment, AssignmentKind, GangKey, Matrix, Packing, Placement,
    ProcessorSet,
};

#[derive(Clone, Copy, Debug)]
enum Operation {
    Allocate(usize),
    /// Of the gangs that there are, the one with that position, wrapping.
    Complete(usize),
    Commence(usize),
    Unite,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let one = prop_oneof![
        5 => (0..10_usize).prop_map(Operation::Allocate),
        3 => any::<usize>().prop_map(Operation::Complete),
        1 => any::<usize>().prop_map(Operation::Commence),
        1 => Just(Operation::Unite),
    ];
    prop::collection::vec(one, 1..60)
}

/// The gangs that must be there: by key the size, the descriptor, and whether the gang has begun.
type Expected = BTreeMap<GangKey, (usize, u32, bool)>;

fn used(matrix: &Matrix<u32>) -> Vec<usize> {
    (0..matrix.slots()).filter(|slot| !matrix.gangs(*slot).is_empty()).collect()
}

fn occupied(matrix: &Matrix<u32>, slot: usize) -> usize {
    matrix.processors() - matrix.free(slot).len()
}

/// Checks that each gang is in one slot, on as many processors as it has members, and that no two
/// of a slot share a processor. The counts agree with the gangs.
fn consistent(matrix: &Matrix<u32>, expected: &Expected) -> Result<(), TestCaseError> {
    let mut found = Vec::new();
    for slot in 0..matrix.slots() {
        let mut free = ProcessorSet::below(matrix.processors());
        for &gang in matrix.gangs(slot) {
            let (size, descriptor, begun) = expected[&gang];
            let processors = matrix.placement(gang).unwrap().processors;
            prop_assert_eq!(matrix.placement(gang), Some(Placement { slot, processors }));
            prop_assert_eq!(processors.len(), size);
            prop_assert!(processors.is_subset(free), "two gangs of slot {} on one processor", slot);
            prop_assert_eq!(matrix.descriptor(gang), Some(&descriptor));
            prop_assert_eq!(matrix.pending(slot).contains(&gang), !begun);
            free = free.without(processors);
            found.push(gang);
        }
        prop_assert_eq!(matrix.free(slot), free);
        let pending = matrix.pending(slot);
        prop_assert!(pending.iter().all(|gang| matrix.gangs(slot).contains(gang)));
    }
    found.sort_unstable();
    prop_assert!(found.iter().eq(expected.keys()), "a gang was lost or doubled");
    prop_assert_eq!(matrix.len(), expected.len());
    round_robin(matrix)
}

fn round_robin(matrix: &Matrix<u32>) -> Result<(), TestCaseError> {
    let used = used(matrix);
    prop_assert_eq!(matrix.used(), used.len());
    prop_assert_eq!(matrix.is_empty(), used.is_empty());
    prop_assert_eq!(matrix.last_used(), used.last().copied());
    for slot in 0..matrix.slots() {
        let next = used.iter().find(|other| **other > slot).or(used.first());
        prop_assert_eq!(matrix.next_used(slot), next.copied());
    }
    Ok(())
}

/// Checks that no member runs twice, that all are at home in their own slot, that alternates are
/// whole, and that no processor is empty on which a member could run.
fn rows(matrix: &Matrix<u32>, alternates: Alternates) -> Result<(), TestCaseError> {
    let mut row = vec![None; matrix.processors()];
    let gangs: Vec<_> = used(matrix).into_iter().flat_map(|slot| matrix.gangs(slot)).collect();
    let mut taken = 0;
    for slot in used(matrix) {
        matrix.row(slot, alternates, &mut row);
        taken += row.iter().flatten().count();
        let empty: ProcessorSet =
            (0..row.len()).filter(|processor| row[*processor].is_none()).collect();
        for &&gang in &gangs {
            let placement = matrix.placement(gang).unwrap();
            let here: Vec<Assignment> = row
                .iter()
                .flatten()
                .filter(|assignment| assignment.gang == gang)
                .copied()
                .collect();
            let are_of = |kind| here.iter().all(|assignment| assignment.kind == kind);
            let whole = here.len() == placement.processors.len();
            for assignment in &here {
                prop_assert_eq!(
                    row[placement.processors.nth(assignment.member).unwrap()],
                    Some(*assignment)
                );
            }
            if placement.slot == slot {
                prop_assert!(whole && are_of(AssignmentKind::Home));
            } else {
                match alternates {
                    Alternates::None => prop_assert!(here.is_empty()),
                    Alternates::Gangs => {
                        prop_assert!(here.is_empty() || whole && are_of(AssignmentKind::Alternate));
                        prop_assert!(
                            !placement.processors.is_subset(empty),
                            "{:?} could run",
                            gang
                        );
                    }
                    Alternates::Fragments => {
                        prop_assert!(
                            are_of(AssignmentKind::Alternate) || are_of(AssignmentKind::Fragment)
                        );
                        prop_assert!(
                            !are_of(AssignmentKind::Alternate) || here.is_empty() || whole
                        );
                        let idle =
                            placement.processors.without(placement.processors.without(empty));
                        prop_assert!(idle.is_empty(), "{:?} could run on {:?}", gang, idle);
                    }
                }
            }
        }
    }
    let utilization = matrix.utilization(alternates);
    prop_assert_eq!(utilization.home + utilization.alternate + utilization.fragment, taken);
    prop_assert_eq!(utilization.processors, matrix.used() * matrix.processors());
    prop_assert!((0.0..1.0).contains(&utilization.lost()));
    Ok(())
}

/// Where a gang of `size` has to go, by going through all slots.
fn slot_for(matrix: &Matrix<u32>, packing: Packing, size: usize) -> Option<usize> {
    let fitting: Vec<_> =
        used(matrix).into_iter().filter(|slot| matrix.free(*slot).len() >= size).collect();
    let used = match packing {
        Packing::FirstFit => fitting.first().copied(),
        Packing::BestFit => {
            fitting.into_iter().min_by_key(|slot| (matrix.free(*slot).len(), *slot))
        }
    };
    used.or_else(|| (0..matrix.slots()).find(|slot| matrix.gangs(*slot).is_empty()))
}

fn unite(matrix: &mut Matrix<u32>) -> Result<(), TestCaseError> {
    let processors = matrix.processors();
    let before = used(matrix);
    let mut places: BTreeMap<GangKey, Placement> = before
        .iter()
        .flat_map(|slot| matrix.gangs(*slot))
        .map(|&gang| (gang, matrix.placement(gang).unwrap()))
        .collect();
    for moved in matrix.unite() {
        prop_assert_eq!(places.insert(moved.gang, moved.to), Some(moved.from));
    }
    for (gang, placement) in places {
        prop_assert_eq!(matrix.placement(gang), Some(placement), "it is not named as moved");
    }
    let after = used(matrix);
    prop_assert!(after.iter().all(|slot| before.contains(slot)), "a slot was opened");
    for (at, &one) in after.iter().enumerate() {
        for &other in &after[at + 1..] {
            prop_assert!(occupied(matrix, one) + occupied(matrix, other) > processors);
        }
    }
    prop_assert!(matrix.unite().is_empty());
    Ok(())
}

fn run(
    processors: usize,
    slots: usize,
    packing: Packing,
    operations: &[Operation],
) -> Result<(), TestCaseError> {
    let mut matrix = Matrix::new(processors, slots, packing).unwrap();
    let mut expected = Expected::new();
    for (number, &operation) in operations.iter().enumerate() {
        let descriptor = u32::try_from(number).unwrap();
        match operation {
            Operation::Allocate(size) => {
                let slot = slot_for(&matrix, packing, size);
                match matrix.allocate(size, descriptor) {
                    Ok((gang, placement)) => {
                        prop_assert_eq!(Some(placement.slot), slot);
                        prop_assert_eq!(expected.insert(gang, (size, descriptor, false)), None);
                    }
                    Err(AllocationError::Empty) => prop_assert_eq!(size, 0),
                    Err(AllocationError::TooLarge { asked, processors: most }) => {
                        prop_assert!((asked, most) == (size, processors) && size > processors);
                    }
                    Err(AllocationError::NoSlot { .. }) => prop_assert_eq!(slot, None),
                }
            }
            Operation::Complete(which) => {
                let gangs: Vec<_> = expected.keys().copied().collect();
                if let Some(gang) = gangs.get(which % gangs.len().max(1)) {
                    let (_, descriptor, _) = expected.remove(gang).unwrap();
                    prop_assert_eq!(matrix.complete(*gang), Some(descriptor));
                    prop_assert_eq!(matrix.complete(*gang), None);
                    prop_assert_eq!(matrix.placement(*gang), None);
                    prop_assert_eq!(matrix.descriptor(*gang), None);
                }
            }
            Operation::Commence(slot) => {
                let slot = slot % slots;
                let pending = matrix.pending(slot).to_vec();
                let mut begun = Vec::new();
                matrix.commence(slot, |gang, _, descriptor| begun.push((gang, *descriptor)));
                prop_assert!(begun.iter().map(|(gang, _)| gang).eq(&pending));
                for (gang, descriptor) in begun {
                    let entry = expected.get_mut(&gang).unwrap();
                    prop_assert_eq!(entry.1, descriptor);
                    entry.2 = true;
                }
            }
            Operation::Unite => unite(&mut matrix)?,
        }
        consistent(&matrix, &expected)?;
    }
    for alternates in [Alternates::None, Alternates::Gangs, Alternates::Fragments] {
        rows(&matrix, alternates)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_matrix_is_what_it_says(
        processors in 1..9_usize,
        slots in 1..9_usize,
        best in any::<bool>(),
        operations in operations(),
    ) {
        let packing = if best { Packing::BestFit } else { Packing::FirstFit };
        run(processors, slots, packing, &operations)?;
    }

    /// Nothing is opened while there is room: no two slots, between them, could hold less than one.
    #[test]
    fn without_completions_no_two_slots_are_half_empty(
        sizes in prop::collection::vec(1..9_usize, 1..40),
        best in any::<bool>(),
    ) {
        let packing = if best { Packing::BestFit } else { Packing::FirstFit };
        let mut matrix = Matrix::new(8, 40, packing).unwrap();
        for size in &sizes {
            matrix.allocate(*size, 0).unwrap();
        }
        let half_empty = used(&matrix).into_iter().filter(|slot| occupied(&matrix, *slot) <= 4);
        prop_assert!(half_empty.count() <= 1);
        let least = sizes.iter().sum::<usize>().div_ceil(8);
        prop_assert!(matrix.used() < 2 * least || matrix.used() == least);
    }

    /// Compares sets with the numbers in order, also beyond the first word.
    #[test]
    fn a_set_is_its_numbers(
        numbers in prop::collection::btree_set(0..ProcessorSet::BOUND, 0..20),
        others in prop::collection::btree_set(0..ProcessorSet::BOUND, 0..200),
        at in 0..=ProcessorSet::BOUND,
    ) {
        let [set, other]: [ProcessorSet; 2] = [&numbers, &others].map(|all| all.iter().copied().collect());
        prop_assert!(set.iter().eq(numbers.iter().copied()));
        prop_assert_eq!(set.len(), numbers.len());
        prop_assert!(set.with(other).iter().eq(numbers.union(&others).copied()));
        prop_assert!(set.without(other).iter().eq(numbers.difference(&others).copied()));
        prop_assert_eq!(set.is_subset(other), numbers.is_subset(&others));
        prop_assert_eq!(set.last(), numbers.last().copied());
        prop_assert_eq!(set.first_from(at), numbers.range(at..).next().copied());
        prop_assert_eq!(set.contains(at), numbers.contains(&at));
        prop_assert_eq!(set.nth(at % 20), numbers.iter().nth(at % 20).copied());
        prop_assert_eq!(set.rank(at), numbers.iter().position(|number| *number == at));
        prop_assert!(ProcessorSet::below(at).iter().eq(0..at));
        let mut without = set;
        without.remove(at);
        prop_assert_eq!(without.contains(at), false);
        prop_assert_eq!(without.len() + usize::from(set.contains(at)), set.len());
    }
}

/// Returns the rows of all used slots, with a letter for each member: a capital at home, a star
/// behind a fragment.
fn picture(matrix: &Matrix<char>, alternates: Alternates) -> Vec<String> {
    let mut row = vec![None; matrix.processors()];
    let slots = (0..matrix.slots()).filter(|slot| !matrix.gangs(*slot).is_empty());
    slots
        .map(|slot| {
            matrix.row(slot, alternates, &mut row);
            let shown = row.iter().map(|assignment| match assignment {
                None => "·".into(),
                Some(Assignment { gang, kind, .. }) => {
                    let name = matrix.descriptor(*gang).unwrap();
                    match kind {
                        AssignmentKind::Home => name.to_string(),
                        AssignmentKind::Alternate => name.to_lowercase().to_string(),
                        AssignmentKind::Fragment => format!("{}*", name.to_lowercase()),
                    }
                }
            });
            shown.collect::<Vec<_>>().join(" ")
        })
        .collect()
}

#[test]
fn the_configuration_of_figure_3() {
    let mut matrix = Matrix::new(5, 8, Packing::FirstFit).unwrap();
    for (size, name) in [(4, 'A'), (3, 'B'), (2, 'C')] {
        matrix.allocate(size, name).unwrap();
    }
    matrix.commence(0, |_, _, _| ());
    assert_eq!(picture(&matrix, Alternates::Gangs), ["A A A A ·", "B B B C C"]);
    assert_eq!((matrix.pending(0).len(), matrix.pending(1).len()), (0, 2));
    assert_eq!((matrix.free(0).len(), matrix.free(1).len()), (1, 0));
    assert_eq!(matrix.last_used(), Some(1));
    assert_eq!(matrix.next_used(1), Some(0));
}

#[test]
fn alternates_fill_what_is_empty() {
    let mut matrix = Matrix::new(5, 8, Packing::FirstFit).unwrap();
    let gangs = [(4, 'A'), (3, 'B'), (4, 'X'), (5, 'Y'), (1, 'C'), (2, 'D')];
    let gangs = gangs.map(|(size, name)| matrix.allocate(size, name).unwrap().0);
    assert_eq!(
        picture(&matrix, Alternates::None),
        ["A A A A C", "B B B D D", "X X X X ·", "Y Y Y Y Y"]
    );
    assert_eq!(
        picture(&matrix, Alternates::Gangs),
        ["A A A A C", "B B B D D", "X X X X c", "Y Y Y Y Y"]
    );
    for gone in [0, 2] {
        matrix.complete(gangs[gone]);
    }
    assert_eq!(picture(&matrix, Alternates::Fragments), ["b b b d* C", "B B B D D", "Y Y Y Y Y"]);
    let lost = [Alternates::None, Alternates::Gangs, Alternates::Fragments]
        .map(|alternates| (matrix.utilization(alternates).lost() * 15.0).round());
    assert_eq!(lost, [4.0, 1.0, 0.0]);
}

#[test]
fn slots_that_have_emptied_are_united() {
    let mut matrix = Matrix::new(4, 8, Packing::BestFit).unwrap();
    let gangs = [(3, 'A'), (3, 'B'), (2, 'C'), (1, 'a'), (1, 'b'), (2, 'D')]
        .map(|(size, name)| matrix.allocate(size, name).unwrap().0);
    assert_eq!(picture(&matrix, Alternates::None), ["A A A a", "B B B b", "C C D D"]);
    matrix.complete(gangs[0]);
    assert_eq!(matrix.unite(), [], "a would need a processor");
    matrix.complete(gangs[1]);
    // Two slots have one member each, both on processor 3. One of the two is given up, and its
    // member moves to another processor.
    let moves = matrix.unite();
    assert_eq!(moves.len(), 1);
    assert_ne!(moves[0].from.processors, moves[0].to.processors, "both ran on the same processor");
    assert_eq!(matrix.used(), 2);
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    for (processors, slots) in [(0, 1), (1, 0), (257, 1), (1, 257)] {
        let refused =
            Matrix::<()>::new(processors, slots, Packing::default()).unwrap_err().to_string();
        assert!(
            refused.contains(&format!("{processors} processors and {slots} slots")),
            "{refused}"
        );
    }
    let mut matrix = Matrix::new(2, 1, Packing::default()).unwrap();
    matrix.allocate(2, ()).unwrap();
    let refused = [0, 3, 1].map(|size| matrix.allocate(size, ()).unwrap_err().to_string());
    assert!(refused[0].contains("0 members"), "{}", refused[0]);
    assert!(refused[1].contains("3 members, but there are 2 processors"), "{}", refused[1]);
    assert!(refused[2].contains("none of the 1 slots"), "{}", refused[2]);
}
