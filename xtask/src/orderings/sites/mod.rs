//! The places where a file asks for a memory ordering, and what each could be weakened to.
//!
//! A fence of a handshake (`SLEEP.heavy()`, see `machine::handshake`) is a site too: it names no
//! ordering, and can be removed.
//!
//! A site is known by file, function, operation and its number among the sites of the function:
//! `RawTicket::unlock store#1` stays itself when lines above it come and go.

mod handshakes;

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::ops::Range;

use super::lexer::{Kind, Token, tokens};

/// Orderings that ask for something. `Relaxed` asks for nothing, so it is no site.
const ASKING: [&str; 4] = ["Acquire", "Release", "AcqRel", "SeqCst"];

/// The operation that the ordering is given to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Load,
    Store,
    ReadModifyWrite,
    Fence,
    /// A fence of a handshake of which one side is light and the other heavy; it names no ordering.
    Handshake,
    /// A fence of a handshake with `fence(SeqCst)` on both sides; it names no ordering either.
    SymmetricHandshake,
    /// Something else that takes an ordering, such as `wait_until`.
    Passed,
}

/// One ordering in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    /// `Type::function`, `function`, or `-` outside of any.
    pub(crate) function: String,
    /// Name of what is called; with the name of the constant for a handshake.
    pub(crate) operation: String,
    /// Number among the sites of the function, from 1. Fences of asymmetric handshakes have numbers
    /// of their own, so that the orderings beside them keep theirs.
    pub(crate) ordinal: usize,
    /// The operation that the ordering is given to.
    pub(crate) role: Role,
    /// The ordering asked for; the word `handshake` for a fence that is light or heavy.
    pub(crate) ordering: String,
    /// Where it stands, counted from 1; for people, not for keys.
    pub(crate) line: usize,
    /// The bytes of `Ordering::Acquire`, or of the whole call for a fence or a handshake.
    pub(crate) place: Range<usize>,
    /// The bytes of `Ordering::Acquire`; those of the whole call for a handshake.
    pub(crate) value: Range<usize>,
}

impl Site {
    /// Returns what it can be weakened to. `Removed` is for fences, which cannot be relaxed.
    pub(crate) fn weaker(&self) -> &'static [&'static str] {
        match (self.role, self.ordering.as_str()) {
            (Role::Fence | Role::SymmetricHandshake, "SeqCst") => {
                &["AcqRel", "Acquire", "Release", "Removed"]
            }
            (Role::Fence, "AcqRel") => &["Acquire", "Release", "Removed"],
            (Role::Fence | Role::Handshake, _) => &["Removed"],
            (Role::ReadModifyWrite, "SeqCst") => &["AcqRel", "Acquire", "Release", "Relaxed"],
            (_, "AcqRel") => &["Acquire", "Release", "Relaxed"],
            (Role::Load, "SeqCst") => &["Acquire", "Relaxed"],
            (Role::Store, "SeqCst") => &["Release", "Relaxed"],
            _ => &["Relaxed"],
        }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}#{} {}", self.function, self.operation, self.ordinal, self.ordering)
    }
}

/// The sites of `source`, in order; without those in test code.
///
/// # Errors
///
/// Line and reason of something that the scanner does not follow.
pub(crate) fn sites(source: &str) -> Result<Vec<Site>, String> {
    let file = File::new(source);
    let mut sites = Vec::new();
    let mut ordinals = BTreeMap::new();
    let bare = file.imported()?;
    for at in 0..file.tokens.len() {
        if let Some(mut site) = file.handshake_at(at) {
            let of = (site.function.clone(), site.role == Role::Handshake);
            site.ordinal = next(ordinals.entry(of).or_insert(0));
            sites.push(site);
            continue;
        }
        let Some(begin) = file.site_at(at, &bare) else { continue };
        let line = file.line(at);
        if file.in_constant(at) {
            return Err(format!(
                "line {line}: an ordering in a const or static cannot be weakened while the program runs; write it where it is used"
            ));
        }
        let call = file.call_around(begin);
        let function = file.function_of(at);
        let ordinal = next(ordinals.entry((function.clone(), false)).or_insert(0));
        let value = file.tokens[begin].begin..file.tokens[at].end();
        let (operation, role, place) = match &call {
            Some(call) => {
                let role = role(&call.name, call.argument);
                let place = if role == Role::Fence { call.place.clone() } else { value.clone() };
                (call.name.clone(), role, place)
            }
            None => ("value".to_owned(), Role::Passed, value.clone()),
        };
        let ordering = file.tokens[at].text.to_owned();
        sites.push(Site { function, operation, ordinal, role, ordering, line, place, value });
    }
    Ok(sites)
}

fn next(ordinal: &mut usize) -> usize {
    *ordinal += 1;
    *ordinal
}

fn role(name: &str, argument: usize) -> Role {
    match (name, argument) {
        ("load" | "look", _)
        | ("compare_exchange" | "compare_exchange_weak", 3)
        | ("fetch_update", 1) => Role::Load,
        ("store", _) => Role::Store,
        ("fence", _) => Role::Fence,
        ("swap" | "compare_exchange" | "compare_exchange_weak", _) => Role::ReadModifyWrite,
        _ if name.starts_with("fetch_") => Role::ReadModifyWrite,
        _ => Role::Passed,
    }
}

struct Call {
    /// The name of the function.
    name: String,
    /// Which argument the ordering is, from 0.
    argument: usize,
    /// The bytes of the call, its path included.
    place: Range<usize>,
}

/// A named stretch of tokens: the body of a function or of an `impl`.
struct Body {
    /// The name of the function or type.
    name: String,
    /// Its tokens.
    range: Range<usize>,
}

/// A file's tokens, and what they belong to.
pub(crate) struct File<'a> {
    /// The text.
    source: &'a str,
    /// Its tokens.
    tokens: Vec<Token<'a>>,
    /// For each token the opening bracket around it.
    around: Vec<Option<usize>>,
    /// For each opening bracket its closing one, or the end.
    closes: Vec<usize>,
    /// Tests, and everything in them.
    tests: Vec<bool>,
    /// `use` items, and tests.
    skipped: Vec<bool>,
    /// The bodies of its functions.
    functions: Vec<Body>,
    /// The bodies of its `impl` blocks.
    impls: Vec<Body>,
}

impl<'a> File<'a> {
    /// Reads `source`.
    pub(crate) fn new(source: &'a str) -> Self {
        let tokens = tokens(source);
        let (around, closes) = brackets(&tokens);
        let (tests, skipped) = (vec![false; tokens.len()], vec![false; tokens.len()]);
        let mut file = Self {
            source,
            tokens,
            around,
            closes,
            tests,
            skipped,
            functions: Vec::new(),
            impls: Vec::new(),
        };
        file.skip_tests();
        file.find_bodies();
        file
    }

    /// Returns the tokens outside of tests.
    pub(crate) fn code(&self) -> Vec<Token<'a>> {
        let tokens = self.tokens.iter().zip(&self.tests);
        tokens.filter(|(_, test)| !**test).map(|(token, _)| *token).collect()
    }

    /// Returns the tokens of tests.
    pub(crate) fn test_code(&self) -> Vec<Token<'a>> {
        let tokens = self.tokens.iter().zip(&self.tests);
        tokens.filter(|(_, test)| **test).map(|(token, _)| *token).collect()
    }

    /// Returns the names of the functions that have a body: `function` or `Type::function`.
    pub(crate) fn functions(&self) -> Vec<String> {
        self.functions.iter().map(|body| self.function_of(body.range.start)).collect()
    }

    /// Lines and segments of the paths outside of tests that begin with one of `roots`; a `use`
    /// with braces is one path of them all.
    pub(crate) fn paths_from(&self, roots: &[&str]) -> Vec<(usize, Vec<&'a str>)> {
        let begins = (0..self.tokens.len()).filter(|&at| {
            let root = roots.iter().any(|root| self.is_word(at, root));
            let first = self.path_begin(at);
            root && !self.tests[at]
                && (first == at || first + 2 == at)
                && self.is(at + 1, ':')
                && self.is(at + 2, ':')
        });
        begins.map(|at| (self.line(at), self.segments(at))).collect()
    }

    /// Lines outside of tests that name `of::name`, whatever the path before it.
    pub(crate) fn members(&self, of: &str, name: &str) -> Vec<usize> {
        let named = |at: usize| {
            self.is_word(at, of)
                && !self.tests[at]
                && self.is(at + 1, ':')
                && self.is(at + 2, ':')
                && self.is_word(at + 3, name)
        };
        (0..self.tokens.len()).filter(|&at| named(at)).map(|at| self.line(at)).collect()
    }

    /// The words of the path that begins at `at`.
    fn segments(&self, mut at: usize) -> Vec<&'a str> {
        let mut segments = Vec::new();
        while let Some(token) = self.tokens.get(at) {
            match token.kind {
                Kind::Word => segments.push(token.text),
                Kind::Mark('{') => {
                    let inside = &self.tokens[at..self.closes[at]];
                    segments.extend(
                        inside
                            .iter()
                            .filter(|token| token.kind == Kind::Word)
                            .map(|token| token.text),
                    );
                    break;
                }
                _ => break,
            }
            if !(self.is(at + 1, ':') && self.is(at + 2, ':')) {
                break;
            }
            at += 3;
        }
        segments
    }

    fn line(&self, at: usize) -> usize {
        self.source[..self.tokens[at].begin].matches('\n').count() + 1
    }

    fn is(&self, at: usize, mark: char) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is(mark))
    }

    fn is_word(&self, at: usize, word: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is_word(word))
    }

    /// Returns whether `::` ends just before `at`.
    fn after_path(&self, at: usize) -> bool {
        at >= 2 && self.is(at - 1, ':') && self.is(at - 2, ':')
    }

    /// The first token of the path that ends at `at`.
    fn path_begin(&self, at: usize) -> usize {
        let mut begin = at;
        while self.after_path(begin) {
            let segment =
                begin.checked_sub(3).filter(|&before| self.tokens[before].kind == Kind::Word);
            match segment {
                Some(segment) => begin = segment,
                None => return begin - 2,
            }
        }
        // `$crate::…`: the dollar belongs to the path.
        if begin > 0 && self.is(begin - 1, '$') { begin - 1 } else { begin }
    }

    /// If token `at` is an ordering that is asked for here, the first token of its path.
    fn site_at(&self, at: usize, bare: &HashSet<&str>) -> Option<usize> {
        let token = &self.tokens[at];
        if self.skipped[at] || token.kind != Kind::Word || !ASKING.contains(&token.text) {
            return None;
        }
        if self.after_path(at) {
            at.checked_sub(3).filter(|&before| self.is_word(before, "Ordering"))?;
        } else if !bare.contains(token.text) {
            return None;
        }
        let begin = self.path_begin(at);
        // A pattern, a comparison or a path that goes on asks for nothing.
        let pattern = self.is(at + 1, '|') && !self.is(at + 2, '|');
        let arm_or_binding = self.is(at + 1, '=') || self.is_word(at + 1, "if");
        let compared = begin >= 2
            && self.is(begin - 1, '=')
            && matches!(self.tokens[begin - 2].kind, Kind::Mark('=' | '!'));
        let goes_on = self.is(at + 1, ':') && self.is(at + 2, ':');
        let in_matches = self.around[at].is_some_and(|open| {
            open >= 2 && self.is(open - 1, '!') && self.is_word(open - 2, "matches")
        });
        let no_site = pattern || arm_or_binding || compared || goes_on || in_matches;
        (!no_site).then_some(begin)
    }

    /// The call of which the value beginning at `begin` is an argument.
    fn call_around(&self, begin: usize) -> Option<Call> {
        let open = self.around[begin].filter(|&open| self.is(open, '('))?;
        let name = self.before_turbofish(open.checked_sub(1)?)?;
        if self.tokens[name].kind != Kind::Word {
            return None;
        }
        let argument = (open + 1..begin)
            .filter(|&at| self.is(at, ',') && self.around[at] == Some(open))
            .count();
        let path = self.path_begin(name);
        let end = self.tokens.get(self.closes[open]).map_or(self.source.len(), Token::end);
        Some(Call {
            name: self.tokens[name].text.to_owned(),
            argument,
            place: self.tokens[path].begin..end,
        })
    }

    /// The name before `::<…>` that ends at `at`; `at` itself if there is none.
    fn before_turbofish(&self, at: usize) -> Option<usize> {
        if !self.is(at, '>') {
            return Some(at);
        }
        let mut depth = 0_usize;
        for begin in (1..=at).rev() {
            if self.is(begin, '>') && !self.is(begin - 1, '-') {
                depth += 1;
            } else if self.is(begin, '<') {
                depth -= 1;
                if depth == 0 {
                    return begin.checked_sub(3).filter(|_| self.after_path(begin));
                }
            }
        }
        None
    }

    fn function_of(&self, at: usize) -> String {
        let innermost = |bodies: &'_ [Body]| {
            let around = bodies.iter().filter(|body| body.range.contains(&at));
            around.min_by_key(|body| body.range.len()).map(|body| body.name.clone())
        };
        match (innermost(&self.impls), innermost(&self.functions)) {
            (Some(of), Some(function)) => format!("{of}::{function}"),
            (None, Some(function)) => function,
            _ => "-".to_owned(),
        }
    }

    /// Returns whether the statement or item around `at` is a const or static.
    fn in_constant(&self, at: usize) -> bool {
        let statement = (0..at)
            .rev()
            .take_while(|&before| !matches!(self.tokens[before].kind, Kind::Mark('{' | '}' | ';')));
        statement.into_iter().any(|before| {
            (self.is_word(before, "const") || self.is_word(before, "static"))
                && !self.is_word(before + 1, "fn")
                && !(before > 0 && self.is(before - 1, '*'))
        })
    }

    /// The orderings that the file's `use` items bring in by themselves; those items are skipped
    /// from then on.
    fn imported(&self) -> Result<HashSet<&'a str>, String> {
        let mut names = HashSet::new();
        for at in 0..self.tokens.len() {
            if !self.is_import(at) {
                continue;
            }
            let end =
                (at..self.tokens.len()).find(|&end| self.is(end, ';')).unwrap_or(self.tokens.len());
            for word in at..end {
                let renamed = self.is_word(word + 1, "as") && !self.is_word(word + 2, "_");
                let text = self.tokens[word].text;
                if renamed && (text == "Ordering" || ASKING.contains(&text)) {
                    return Err(format!(
                        "line {}: `{text}` under another name hides its uses",
                        self.line(word)
                    ));
                }
                let path = self.is(word + 1, ':') && self.is(word + 2, ':');
                if !(path && self.is_word(word, "Ordering")) {
                    continue;
                }
                if self.is(word + 3, '*') {
                    names.extend(ASKING);
                } else if self.is(word + 3, '{') {
                    names.extend(
                        self.tokens[word + 3..self.closes[word + 3]].iter().map(|token| token.text),
                    );
                } else if let Some(one) = self.tokens.get(word + 3) {
                    names.insert(one.text);
                }
            }
        }
        Ok(names)
    }

    /// Returns whether a `use` item begins there, and not what a type captures (`+ use<>`).
    fn is_import(&self, at: usize) -> bool {
        self.is_word(at, "use") && !self.is(at + 1, '<')
    }

    /// Marks `use` items, and what is compiled for tests only.
    fn skip_tests(&mut self) {
        let mut at = 0;
        while at < self.tokens.len() {
            let test = self.is(at, '#') && self.is(at + 1, '[') && self.is_test_cfg(at + 1);
            let end = if test {
                self.item_end(self.closes[at + 1] + 1)
            } else if self.is_import(at) {
                self.item_end(at)
            } else {
                at += 1;
                continue;
            };
            let end = end.min(self.tokens.len());
            self.skipped[at..end].fill(true);
            self.tests[at..end].fill(test);
            at = end.max(at + 1);
        }
    }

    /// Returns whether the attribute opened at `open` is `cfg(test)` or `cfg(all(…test…))`.
    fn is_test_cfg(&self, open: usize) -> bool {
        if !self.is_word(open + 1, "cfg") {
            return false;
        }
        (open..self.closes[open]).filter(|&at| self.is_word(at, "test")).any(|test| {
            let mut inside = self.around[test];
            while let Some(paren) = inside.filter(|&paren| paren > open) {
                if !(self.is_word(paren - 1, "cfg") || self.is_word(paren - 1, "all")) {
                    return false;
                }
                inside = self.around[paren];
            }
            true
        })
    }

    /// The token after the item that begins at `at`, its attributes included.
    fn item_end(&self, mut at: usize) -> usize {
        let around = self.around.get(at).copied().flatten();
        let import = self.is_import(at);
        while at < self.tokens.len() {
            match self.tokens[at].kind {
                Kind::Mark(';') => return at + 1,
                Kind::Mark('{') if !import => return self.closes[at] + 1,
                Kind::Mark('(' | '[' | '{') => at = self.closes[at] + 1,
                // The block that the item stands in ends.
                Kind::Mark('}') if self.around[at] == around => return at,
                _ => at += 1,
            }
        }
        at
    }

    fn find_bodies(&mut self) {
        for at in 0..self.tokens.len() {
            if self.is_word(at, "fn") {
                let name = self.name_at(at + 1);
                if let (Some(name), Some(range)) = (name, self.body_after(at)) {
                    self.functions.push(Body { name, range });
                }
            } else if self.is_word(at, "impl")
                && self.begins_item(at)
                && let Some(range) = self.body_after(at)
            {
                let name = self.implemented(at + 1..range.start);
                self.impls.push(Body { name, range });
            }
        }
    }

    /// A name, or a macro's `$name`.
    fn name_at(&self, at: usize) -> Option<String> {
        if self.is(at, '$') {
            return self.tokens.get(at + 1).map(|token| format!("${}", token.text));
        }
        self.tokens
            .get(at)
            .filter(|token| token.kind == Kind::Word)
            .map(|token| token.text.to_owned())
    }

    fn begins_item(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1) else { return true };
        let after_item = matches!(self.tokens[before].kind, Kind::Mark('{' | '}' | ';' | ']'));
        after_item || self.is_word(before, "unsafe")
    }

    /// The braces that follow `at` before the item ends without any.
    fn body_after(&self, mut at: usize) -> Option<Range<usize>> {
        while at < self.tokens.len() {
            match self.tokens[at].kind {
                Kind::Mark('{') => return Some(at..self.closes[at]),
                Kind::Mark(';' | '}') => return None,
                Kind::Mark('(' | '[') => at = self.closes[at] + 1,
                _ => at += 1,
            }
        }
        None
    }

    /// Returns the type of an `impl` with the head `head`.
    fn implemented(&self, head: Range<usize>) -> String {
        // `for` before a type, not the `for<'a>` of a bound; and only before the `where`.
        let end = head.clone().find(|&at| self.is_word(at, "where")).unwrap_or(head.end);
        let after_for =
            (head.start..end).find(|&at| self.is_word(at, "for") && !self.is(at + 1, '<'));
        let mut at = after_for.map_or_else(|| self.after_generics(head.start), |at| at + 1);
        let mut name = "_".to_owned();
        while at < end {
            match self.name_at(at) {
                Some(segment) => name = segment,
                None if self.is(at, ':') || self.is(at, '&') => {}
                None => break,
            }
            at += if self.is(at, '$') { 2 } else { 1 };
        }
        name
    }

    /// The token after `<…>` at `at`, if that is there.
    fn after_generics(&self, at: usize) -> usize {
        if !self.is(at, '<') {
            return at;
        }
        let mut depth = 0_usize;
        for end in at..self.tokens.len() {
            // The arrow of `Fn() -> T` closes nothing.
            if self.is(end, '>') && !self.is(end - 1, '-') {
                depth -= 1;
                if depth == 0 {
                    return end + 1;
                }
            } else if self.is(end, '<') {
                depth += 1;
            }
        }
        self.tokens.len()
    }
}

/// For each token the opening bracket around it, and for each opening bracket its closing one.
///
/// Brackets of one kind match each other whatever stands between: the compiler has accepted the
/// file.
fn brackets(tokens: &[Token<'_>]) -> (Vec<Option<usize>>, Vec<usize>) {
    let mut around = vec![None; tokens.len()];
    let mut closes = vec![tokens.len(); tokens.len()];
    let mut open: Vec<usize> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if matches!(token.kind, Kind::Mark(')' | ']' | '}'))
            && let Some(opened) = open.pop()
        {
            closes[opened] = at;
        }
        around[at] = open.last().copied();
        if matches!(token.kind, Kind::Mark('(' | '[' | '{')) {
            open.push(at);
        }
    }
    (around, closes)
}

#[cfg(test)]
mod tests;
