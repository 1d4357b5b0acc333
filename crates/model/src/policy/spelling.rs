//! "Did you mean": the known name that a mistyped one was most likely meant to be.

/// The candidate nearest to `name`, when it is near enough to be worth naming.
#[must_use]
pub fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Longer words take more slips; nothing hostile is compared at length.
    let name: Vec<char> = name.chars().take(64).flat_map(char::to_lowercase).collect();
    let allowed = (name.len() / 3).max(1);
    let rated = candidates
        .into_iter()
        .map(|candidate| (distance(&name, candidate), candidate));
    rated
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, substitutions and swaps of neighbours that lead from one word to the other.
fn distance(from: &[char], to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (row, &left) in from.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, &right) in to.iter().enumerate() {
            let mut best = (last[column] + usize::from(left != right))
                .min(last[column + 1] + 1)
                .min(current[column] + 1);
            if row > 0 && column > 0 && left == to[column - 1] && from[row - 1] == right {
                best = best.min(before[column - 1] + 1);
            }
            current.push(best);
        }
        before = std::mem::replace(&mut last, current);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn slips_find_their_word_and_other_words_find_none() {
        let known = ["read", "write", "hide", "readonly", "lift", "scan_depth"];
        let table = [
            ("reed", Some("read")),
            ("wirte", Some("write")),
            ("Hide", Some("hide")),
            ("read_only", Some("readonly")),
            ("scandepth", Some("scan_depth")),
            ("mounts", None),
            ("", None),
        ];
        for (name, expected) in table {
            assert_eq!(closest(name, known), expected, "{name}");
        }
    }
}
