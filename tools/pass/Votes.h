//===- Votes.h - Votes of lanes at the place of their branch ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//

#ifndef ROCOV_PASS_VOTES_H
#define ROCOV_PASS_VOTES_H

namespace llvm {
class Function;
class Value;
} // namespace llvm

namespace rocov {

/// Marks \p Vote, a vote of the active lanes, as one that moveVotes() may move.
void markVote(llvm::Value *Vote);

/// Moves marked votes in \p F, a kernel, to the comparisons whose results they count, where the
/// lanes are the same: there a branch has the mask of the lanes at hand, and no lane
/// keeps the result. Returns whether there were any.
bool moveVotes(llvm::Function &F);

} // namespace rocov

#endif // ROCOV_PASS_VOTES_H
