//===- Votes.cpp - Votes of lanes at the place of their branch ------------===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//

#include "Votes.h"

#include "Cycles.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Metadata.h"

using namespace llvm;

namespace rocov {

static constexpr StringLiteral Mark = "rocov.vote";

void markVote(Value *Vote) {
  auto *Call = cast<CallInst>(Vote);
  Call->setMetadata(Mark, MDNode::get(Call->getContext(), {}));
}

/// Returns whether \p To and \p From, in one loop or in none, run by turns with the same
/// lanes: those of one come from the other, or go there, once in a turn.
static bool meetOnce(BasicBlock *To, BasicBlock *From, const CycleInfo &Cycles,
                     const DominatorTree &Dominators,
                     const PostDominatorTree &PostDominators) {
  CyclePtr C = cycleAround(Cycles, From);
  if (cycleAround(Cycles, To) != C || !Dominators.dominates(To, From) ||
      !PostDominators.dominates(From, To))
    return false;
  // Not by way of another turn.
  SmallSetVector<BasicBlock *, 16> Between;
  Between.insert(To);
  for (unsigned I = 0; C && I != Between.size(); ++I)
    for (BasicBlock *Next : successors(Between[I])) {
      if (Next == C->getHeader())
        return false;
      if (Next != From)
        Between.insert(Next);
    }
  return true;
}

bool moveVotes(Function &F) {
  // Functions would have to save a register for callers.
  if (F.getCallingConv() != CallingConv::AMDGPU_KERNEL)
    return false;
  SmallVector<CallInst *, 8> Votes;
  for (Instruction &I : instructions(F))
    if (I.getMetadata(Mark))
      Votes.push_back(cast<CallInst>(&I));
  if (Votes.empty())
    return false;
  DominatorTree Dominators(F);
  PostDominatorTree PostDominators(F);
  CycleInfo Cycles;
  Cycles.compute(F);
  for (CallInst *Vote : Votes) {
    auto *Test = dyn_cast<Instruction>(Vote->getArgOperand(0));
    if (!Test || !(isa<CmpInst>(Test) || isa<TruncInst>(Test)) ||
        Test->getParent() == Vote->getParent())
      continue;
    if (!meetOnce(Test->getParent(), Vote->getParent(), Cycles, Dominators,
                  PostDominators))
      continue;
    User *Number = Vote->hasOneUse() ? Vote->user_back() : nullptr;
    Vote->moveAfter(Test);
    // The number of lanes takes fewer registers than their mask.
    if (auto *Bits = dyn_cast_or_null<IntrinsicInst>(Number);
        Bits && Bits->getIntrinsicID() == Intrinsic::ctpop)
      Bits->moveAfter(Vote);
  }
  return true;
}

} // namespace rocov
