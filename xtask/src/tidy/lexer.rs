//! Just enough of Rust's lexical rules to tell code from comments and literals.

/// The same text, line for line and column for column, with comments and the insides of literals blanked out.
pub(super) fn code_only(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < characters.len() {
        let end = skip(&characters, at);
        if end == at {
            code.push(characters[at]);
            at += 1;
        } else {
            code.extend(
                characters[at..end]
                    .iter()
                    .map(|&each| if each == '\n' { '\n' } else { ' ' }),
            );
            at = end;
        }
    }
    code
}

/// The end of the comment or literal that starts at `at`; `at` itself when none does.
fn skip(characters: &[char], at: usize) -> usize {
    let next = characters.get(at + 1).copied();
    match (characters[at], next) {
        ('/', Some('/')) => find(characters, at, |each| each == '\n'),
        ('/', Some('*')) => block_comment(characters, at),
        ('"', _) => quoted(characters, at + 1),
        ('\'', Some('\\')) => character(characters, at),
        ('\'', Some(_)) if characters.get(at + 2) == Some(&'\'') => at + 3,
        ('r', Some('"' | '#')) if !follows_word(characters, at) => raw(characters, at),
        _ => at,
    }
}

fn find(characters: &[char], from: usize, wanted: impl Fn(char) -> bool) -> usize {
    (from..characters.len())
        .find(|&each| wanted(characters[each]))
        .unwrap_or(characters.len())
}

fn block_comment(characters: &[char], at: usize) -> usize {
    let mut depth = 0usize;
    let mut here = at;
    while here < characters.len() {
        match (characters[here], characters.get(here + 1)) {
            ('/', Some('*')) => {
                depth += 1;
                here += 2;
            }
            ('*', Some('/')) => {
                depth -= 1;
                here += 2;
                if depth == 0 {
                    return here;
                }
            }
            _ => here += 1,
        }
    }
    here
}

fn quoted(characters: &[char], from: usize) -> usize {
    let mut here = from;
    while here < characters.len() {
        match characters[here] {
            '\\' => here += 2,
            '"' => return here + 1,
            _ => here += 1,
        }
    }
    characters.len()
}

/// `'\n'`, `'\''`, `'\u{1f600}'`.
fn character(characters: &[char], at: usize) -> usize {
    (find(characters, at + 3, |each| each == '\'') + 1).min(characters.len())
}

/// `r"…"`, `r##"…"##`; anything else, such as `r#type`, is code.
fn raw(characters: &[char], at: usize) -> usize {
    let quote = find(characters, at + 1, |each| each != '#');
    if characters.get(quote) != Some(&'"') {
        return at;
    }
    let hashes = quote - at - 1;
    let closes = |here: usize| {
        characters[here] == '"'
            && characters
                .get(here + 1..=here + hashes)
                .is_some_and(|rest| rest.iter().all(|&each| each == '#'))
    };
    (quote + 1..characters.len())
        .find(|&here| closes(here))
        .map_or(characters.len(), |here| here + 1 + hashes)
}

/// `br"…"` is a literal too, but the `r` of `for"` cannot be.
fn follows_word(characters: &[char], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).map(|index| characters[index]);
    let is_word = |each: Option<char>| each.is_some_and(|each| each.is_alphanumeric() || each == '_');
    match before(1) {
        Some('b' | 'c') => is_word(before(2)),
        other => is_word(other),
    }
}

#[cfg(test)]
mod tests {
    use super::code_only;

    #[test]
    fn comments_and_literals_are_blanked_and_lines_stay() {
        let cases = [
            ("a // unsafe\nb", "a          \nb"),
            ("a /* x /* y */ z */ b", "a                   b"),
            ("f(\"todo!(\\\" x\")", "f(            )"),
            ("r#\"un\"safe\"# + r#type", "             + r#type"),
            ("'\\'' + 'u' + 'static", "     +     + 'static"),
            ("b\"x\" br\"y\" for", "b    b     for"),
            ("\"open", "     "),
        ];
        for (text, wanted) in cases {
            assert_eq!(code_only(text), wanted, "{text}");
        }
    }
}
