//! The macro [`select!`](crate::select).

/// Does one of several sends and receives on [channels](crate::sync::channel): waits until one can
/// be done, and then evaluates its arm.
///
/// ```text
/// select! {
///     recv(RECEIVER) -> RESULT => EXPRESSION,
///     send(SENDER, MESSAGE) -> RESULT => EXPRESSION,
///     default => EXPRESSION,             // optional: if none can be done at once
///     default(TIMEOUT) => EXPRESSION,    // or: if none can be done in that time
/// }
/// ```
///
/// `RESULT` is a pattern for what [`recv`](crate::sync::channel::Receiver::recv) or
/// [`send`](crate::sync::channel::Sender::send) returns. An operation on a channel that is closed
/// can be done at once, and fails. Of several that can be done at once, one is chosen at random.
/// All arms have one type.
///
/// The arms are those of `crossbeam_channel::select!`, with these differences:
///
/// - `MESSAGE` is evaluated at the beginning, whether its send is chosen or not. A message that is
///   not sent is dropped.
/// - The first or only arm cannot be `default`, and there is one `default` at most, as the last
///   arm.
/// - `recv` and `send` without `->` are not there.
///
/// For a number of operations that only the running program knows:
/// [`channel::select`](crate::sync::channel::select()).
///
/// ```
/// use std::time::Duration;
/// use stanchion_activations::select;
/// use stanchion_activations::sync::channel;
///
/// let (numbers, numbers_received) = channel::unbounded();
/// let (_words, words_received) = channel::unbounded::<&str>();
/// numbers.send(1).unwrap();
///
/// let text = select! {
///     recv(numbers_received) -> number => number.unwrap().to_string(),
///     recv(words_received) -> word => word.unwrap().to_string(),
/// };
/// assert_eq!(text, "1");
///
/// let (sender, _receiver) = channel::bounded(0);
/// select! {
///     recv(words_received) -> _ => unreachable!("no word was sent"),
///     send(sender, 2) -> _ => unreachable!("no receiver waits"),
///     default(Duration::from_millis(1)) => {}
/// }
/// ```
#[macro_export]
macro_rules! select {
    ($($arms:tt)+) => { $crate::select_arms!(() $($arms)+) };
}

/// The parts of [`select!`](crate::select): takes arm after arm, with a variable for each, and then
/// writes them down.
#[doc(hidden)]
#[macro_export]
macro_rules! select_arms {
    // Each expansion has variables of its own.
    (@push ($($arms:tt)*) $kind:ident $operands:tt $result:tt $body:tt $($rest:tt)*) => {
        $crate::select_arms!(
            ($($arms)* ($kind end message operation outcome $operands $result $body)) $($rest)*
        )
    };
    (@run
        ($(($kind:ident $end:ident $message:ident $operation:ident $outcome:ident
            $operands:tt ($result:pat) ($body:expr)))+)
        ($select:ident($($timeout:expr)?)) ($default:expr)
    ) => {{
        let ($($outcome,)+) = {
            $($crate::select_arms!(@$kind $end $message $operation $operands);)+
            $crate::sync::channel::$select(&mut [$($operation.selectable()),+] $(, $timeout)?);
            ($($crate::select_arms!(@outcome $kind $operation),)+)
        };
        $(if let ::core::option::Option::Some(outcome) = $outcome {
            let $result = outcome;
            $body
        } else)+ {
            $default
        }
    }};
    // A reference in a `let` keeps what it refers to, so that an end may be made in place.
    (@recv $end:ident $message:ident $operation:ident ($receiver:expr)) => {
        let $end = &$receiver;
        let mut $operation = $crate::sync::channel::Receiving::new($end);
    };
    (@send $end:ident $message:ident $operation:ident ($sender:expr, $value:expr)) => {
        let $end = &$sender;
        let $message = $value;
        let mut $operation = $crate::sync::channel::Sending::new($end, $message);
    };
    (@outcome recv $operation:ident) => { $operation.into_result() };
    (@outcome send $operation:ident) => { $operation.into_result().ok() };
    // The arms are complete.
    ($arms:tt) => { $crate::select_arms!(@run $arms (select()) (unreachable!())) };
    ($arms:tt default => $body:expr $(,)?) => {
        $crate::select_arms!(@run $arms (try_select()) ($body))
    };
    ($arms:tt default() => $body:expr $(,)?) => {
        $crate::select_arms!(@run $arms (try_select()) ($body))
    };
    ($arms:tt default($timeout:expr) => $body:expr $(,)?) => {
        $crate::select_arms!(@run $arms (select_timeout($timeout)) ($body))
    };
    // One more arm, which ends with a comma, with a block, or is the last one.
    ($arms:tt $kind:ident($($operands:expr),+) -> $result:pat => $body:expr, $($rest:tt)*) => {
        $crate::select_arms!(@push $arms $kind ($($operands),+) ($result) ($body) $($rest)*)
    };
    ($arms:tt $kind:ident($($operands:expr),+) -> $result:pat => $body:block $($rest:tt)*) => {
        $crate::select_arms!(@push $arms $kind ($($operands),+) ($result) ($body) $($rest)*)
    };
    ($arms:tt $kind:ident($($operands:expr),+) -> $result:pat => $body:expr) => {
        $crate::select_arms!(@push $arms $kind ($($operands),+) ($result) ($body))
    };
}
