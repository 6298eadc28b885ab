//! Dominators of a graph: the nodes that all ways from its root to a node come through.

/// The node before each that all ways from `root` to it come through last: its immediate dominator. The root is its own.
/// `None` if no way leads to the node.
///
/// `next` and `before` have the nodes after each node and before it. If they change places, the dominators are those of the
/// reversed graph (Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", 2001).
pub(super) fn immediate_dominators(
    next: &[Vec<usize>],
    before: &[Vec<usize>],
    root: usize,
) -> Vec<Option<usize>> {
    // The nodes in the order in which a search from the root is done with them.
    let mut order = Vec::new();
    let mut rank = vec![0; next.len()];
    let mut is_known = vec![false; next.len()];
    is_known[root] = true;
    let mut path = vec![(root, 0)];
    while let Some((node, at)) = path.last_mut() {
        match next[*node].get(*at) {
            Some(other) => {
                *at += 1;
                if !std::mem::replace(&mut is_known[*other], true) {
                    path.push((*other, 0));
                }
            }
            None => {
                rank[*node] = order.len();
                order.push(*node);
                path.pop();
            }
        }
    }
    let mut dominators = vec![None; next.len()];
    dominators[root] = Some(root);
    loop {
        let mut is_done = true;
        for node in order.iter().rev().skip(1) {
            let known = before[*node].iter().copied();
            let known = known.filter(|block| dominators[*block].is_some());
            let found = known.reduce(|mut one, mut other| {
                while one != other {
                    let lower = if rank[one] < rank[other] {
                        &mut one
                    } else {
                        &mut other
                    };
                    *lower = dominators[*lower].unwrap_or(root);
                }
                one
            });
            is_done &= dominators[*node] == found;
            dominators[*node] = found;
        }
        if is_done {
            return dominators;
        }
    }
}

/// Answers whether a node dominates another, by the immediate dominators.
pub(super) struct DominatorTree {
    /// The first and the last number of each node and those that it dominates. `None` if no way leads to it.
    numbers: Vec<Option<(usize, usize)>>,
}

impl DominatorTree {
    pub(super) fn new(dominators: &[Option<usize>], root: usize) -> Self {
        let mut children = vec![Vec::new(); dominators.len()];
        for (node, dominator) in dominators.iter().enumerate() {
            if let Some(dominator) = dominator.filter(|_| node != root) {
                children[dominator].push(node);
            }
        }
        let mut numbers = vec![None; dominators.len()];
        let (mut next, mut path) = (1, vec![(root, 0)]);
        numbers[root] = Some((0, 0));
        while let Some((node, at)) = path.last_mut() {
            match children[*node].get(*at) {
                Some(child) => {
                    *at += 1;
                    numbers[*child] = Some((next, next));
                    path.push((*child, 0));
                    next += 1;
                }
                None => {
                    if let Some((_, last)) = &mut numbers[*node] {
                        *last = next - 1;
                    }
                    path.pop();
                }
            }
        }
        Self { numbers }
    }

    /// Returns whether all ways from the root to `node` come through `dominator`. A node dominates itself.
    pub(super) fn dominates(&self, dominator: usize, node: usize) -> bool {
        match (self.numbers[dominator], self.numbers[node]) {
            (Some((first, last)), Some((number, _))) => (first..=last).contains(&number),
            _ => false,
        }
    }
}
