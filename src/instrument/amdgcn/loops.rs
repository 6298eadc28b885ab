//! The loops of a function: circles among its stretches.

/// The loops within loops that are told apart. In deeper ones, each node is a head.
const MAX_DEPTH: u32 = 32;

/// The loops of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Loops {
    /// The number of loops around each node.
    pub(super) depths: Vec<u32>,
    /// The nodes without which no way leads in a circle.
    pub(super) heads: Vec<bool>,
}

impl Loops {
    /// Finds the loops of a graph, whose edges lead from each node to its successors. A largest circle is a loop, and the
    /// circles that are left without its head are the loops inside it.
    pub(super) fn find(successors: &[Vec<usize>]) -> Self {
        let count = successors.len();
        let mut found = Self {
            depths: vec![0; count],
            heads: vec![false; count],
        };
        let mut search = Search {
            successors,
            parts: vec![0; count],
            places: vec![None; count],
            lowest: vec![0; count],
            waiting: Vec::new(),
            is_waiting: vec![false; count],
        };
        let mut sources: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (node, next) in successors.iter().enumerate() {
            next.iter().for_each(|next| sources[*next].push(node));
        }
        let mut parts = 0;
        let mut open = vec![(0..count).collect::<Vec<usize>>()];
        while let Some(nodes) = open.pop() {
            for circle in search.circles(&nodes) {
                parts += 1;
                for node in &circle {
                    search.parts[*node] = parts;
                    found.depths[*node] += 1;
                }
                // One that ways from outside lead to, if there is one.
                let rank = |node: &usize| {
                    let mut sources = sources[*node].iter();
                    let is_inner = sources.all(|source| search.parts[*source] == parts);
                    (is_inner, *node)
                };
                let Some(head) = circle.iter().copied().min_by_key(rank) else {
                    continue;
                };
                found.heads[head] = true;
                search.parts[head] = usize::MAX;
                if found.depths[head] >= MAX_DEPTH {
                    circle.iter().for_each(|node| found.heads[*node] = true);
                } else {
                    open.push(circle.into_iter().filter(|node| *node != head).collect());
                }
            }
        }
        found
    }
}

/// A search for circles (Tarjan, "Depth-first search and linear graph algorithms", 1972).
struct Search<'a> {
    successors: &'a [Vec<usize>],
    /// The number of the part that each node is in. Edges between parts are ignored.
    parts: Vec<usize>,
    /// The order in which nodes were found.
    places: Vec<Option<usize>>,
    /// The lowest place that a way leads to from a node.
    lowest: Vec<usize>,
    /// The nodes whose circle is not known yet.
    waiting: Vec<usize>,
    is_waiting: Vec<bool>,
}

impl Search<'_> {
    /// The largest circles of a part, which consists of these nodes.
    fn circles(&mut self, nodes: &[usize]) -> Vec<Vec<usize>> {
        nodes.iter().for_each(|node| self.places[*node] = None);
        let mut found = Vec::new();
        let mut next_place = 0;
        for start in nodes {
            if self.places[*start].is_some() {
                continue;
            }
            // Each node on the way, and the number of its edge that comes next.
            let mut way = vec![(*start, 0)];
            while let Some((node, edge)) = way.pop() {
                if edge == 0 {
                    self.places[node] = Some(next_place);
                    self.lowest[node] = next_place;
                    next_place += 1;
                    self.waiting.push(node);
                    self.is_waiting[node] = true;
                }
                let Some(next) = self.successors[node].get(edge).copied() else {
                    found.extend(self.leave(node));
                    if let Some((before, _)) = way.last() {
                        self.lowest[*before] = self.lowest[*before].min(self.lowest[node]);
                    }
                    continue;
                };
                way.push((node, edge + 1));
                if self.parts[next] != self.parts[node] {
                    continue;
                }
                match self.places[next] {
                    None => way.push((next, 0)),
                    Some(place) if self.is_waiting[next] => {
                        self.lowest[node] = self.lowest[node].min(place);
                    }
                    Some(_) => {}
                }
            }
        }
        found
    }

    /// Leaves a node whose edges have all been followed. Returns the circle that was entered by it.
    fn leave(&mut self, node: usize) -> Option<Vec<usize>> {
        if self.places[node] != Some(self.lowest[node]) {
            return None;
        }
        let first = self.waiting.iter().rposition(|other| *other == node)?;
        let circle = self.waiting.split_off(first);
        for node in &circle {
            self.is_waiting[*node] = false;
        }
        let is_circle = circle.len() > 1 || self.successors[node].contains(&node);
        is_circle.then_some(circle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(successors: &[&[usize]]) -> (Vec<u32>, Vec<usize>) {
        let successors: Vec<Vec<usize>> = successors.iter().map(|next| next.to_vec()).collect();
        let loops = Loops::find(&successors);
        let heads = (0..successors.len()).filter(|node| loops.heads[*node]);
        let heads = heads.collect();
        (loops.depths, heads)
    }

    #[test]
    fn a_block_that_lies_behind_is_no_loop() {
        // 3 is behind the end of the code, and leads back to 1.
        let code: [&[usize]; 4] = [&[1, 3], &[2], &[], &[1]];
        assert_eq!(found(&code), (vec![0; 4], vec![]));
    }

    #[test]
    fn each_loop_has_one_head() {
        // 1 to 5 is a loop with two ways in it, and 3 one inside it. It is entered at 2.
        let code: [&[usize]; 7] = [&[2], &[2, 6], &[3, 4], &[3, 5], &[5], &[1], &[]];
        assert_eq!(found(&code), (vec![0, 1, 1, 2, 1, 1, 0], vec![2, 3]));
    }

    #[test]
    fn a_loop_with_two_entries_has_a_head_for_each_circle() {
        let code: [&[usize]; 4] = [&[1, 2], &[2, 3], &[1], &[]];
        assert_eq!(found(&code), (vec![0, 1, 1, 0], vec![1]));
    }

    #[test]
    fn nodes_in_many_loops_are_heads() {
        // Each node leads to all: every one of them has to be cut, but for the last.
        let all: Vec<usize> = (0..40).collect();
        let code: Vec<&[usize]> = (0..40).map(|_| all.as_slice()).collect();
        let (depths, heads) = found(&code);
        assert_eq!(heads.len(), 40);
        assert_eq!(depths.iter().max(), Some(&MAX_DEPTH));
    }
}
