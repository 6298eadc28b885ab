//! The loops of a function: circles among its stretches.

/// The search finds loops within loops down to this depth. Below it, each node is a head.
const MAX_DEPTH: u32 = 32;

/// The most nodes of a circle of which each is tried as its head.
const MAX_TRIED: usize = 32;

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
    /// circles that are left without its head are the loops inside it. Ways start at the `entries`. Nodes that are `costly` are
    /// heads only if others would leave more circles.
    pub(super) fn find<S: AsRef<[usize]>>(
        successors: &[S],
        entries: &[usize],
        costly: &[bool],
    ) -> Self {
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
        // No way leads through others, such as the padding before a loop.
        let mut is_reached = vec![false; count];
        let mut open = entries.to_vec();
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut is_reached[node], true) {
                open.extend(successors[node].as_ref());
            }
        }
        let sources = Predecessors::new(successors, &is_reached);
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
                    let mut sources = sources.of(*node).iter();
                    let is_inner = sources.all(|source| search.parts[*source] == parts);
                    (is_inner, *node)
                };
                let Some(mut head) = circle.iter().copied().min_by_key(rank) else {
                    continue;
                };
                if costly[head] && circle.len() <= MAX_TRIED {
                    let most = search.left_without(head, &circle);
                    let cheap = circle.iter().copied().filter(|node| !costly[*node]);
                    let mut cheap =
                        cheap.filter(|node| search.left_without(*node, &circle) <= most);
                    head = cheap.next().unwrap_or(head);
                }
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

/// The nodes that lead to each node of a graph.
pub(super) struct Predecessors {
    /// Those of all nodes, one node after the other.
    all: Vec<usize>,
    /// The end of those of each node.
    ends: Vec<usize>,
}

impl Predecessors {
    /// Those of a graph, as far as they are `included`.
    pub(super) fn new<S: AsRef<[usize]>>(successors: &[S], included: &[bool]) -> Self {
        let edges = || {
            let nodes = successors.iter().enumerate();
            let nodes = nodes.filter(|(node, _)| included[*node]);
            nodes.flat_map(|(node, next)| next.as_ref().iter().map(move |next| (node, *next)))
        };
        let mut ends = vec![0; successors.len()];
        edges().for_each(|(_, next)| ends[next] += 1);
        let mut sum = 0;
        for end in &mut ends {
            sum += std::mem::replace(end, sum);
        }
        let mut all = vec![0; sum];
        for (node, next) in edges() {
            all[ends[next]] = node;
            ends[next] += 1;
        }
        Self { all, ends }
    }

    pub(super) fn of(&self, node: usize) -> &[usize] {
        let start = node.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.all[start..self.ends[node]]
    }
}

/// A search for circles (Tarjan, "Depth-first search and linear graph algorithms", 1972).
struct Search<'a, S> {
    successors: &'a [S],
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

impl<S: AsRef<[usize]>> Search<'_, S> {
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
                let Some(next) = self.successors[node].as_ref().get(edge).copied() else {
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

    /// The number of nodes in the circles that are left of one without a node.
    fn left_without(&mut self, without: usize, circle: &[usize]) -> usize {
        let part = std::mem::replace(&mut self.parts[without], usize::MAX);
        let rest: Vec<usize> = circle
            .iter()
            .copied()
            .filter(|node| *node != without)
            .collect();
        let left = self.circles(&rest);
        self.parts[without] = part;
        left.iter().map(Vec::len).sum()
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
        let is_circle = circle.len() > 1 || self.successors[node].as_ref().contains(&node);
        is_circle.then_some(circle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(successors: &[&[usize]]) -> (Vec<u32>, Vec<usize>) {
        let successors: Vec<Vec<usize>> = successors.iter().map(|next| next.to_vec()).collect();
        let loops = Loops::find(&successors, &[0], &vec![false; successors.len()]);
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
        // 1 to 5 is a loop with two ways in it, and 3 one inside it. It is entered at 2; 7 is padding before 1.
        let code: [&[usize]; 8] = [&[2], &[2, 6], &[3, 4], &[3, 5], &[5], &[1], &[], &[1]];
        assert_eq!(found(&code), (vec![0, 1, 1, 2, 1, 1, 0, 0], vec![2, 3]));
    }

    #[test]
    fn a_head_may_be_another_node_of_a_loop() {
        let code = [vec![1], vec![2, 5], vec![3, 4], vec![4], vec![1], vec![]];
        let costly = [false, true, false, false, false, false];
        let loops = Loops::find(&code, &[0], &costly);
        assert_eq!(loops.heads, [false, false, true, false, false, false]);
        let loops = Loops::find(&code, &[0], &[false; 6]);
        assert_eq!(loops.heads, [false, true, false, false, false, false]);
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
