//===- Votes.cpp - Votes of lanes at the place of their branch ------------===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//

#include "Votes.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/CycleAnalysis.h"
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
    auto *Test = dyn_cast<CmpInst>(Vote->getArgOperand(0));
    if (!Test || Test->getParent() == Vote->getParent())
      continue;
    // Both blocks have the same lanes, together: those of one come from the other,
    // or go there, once.
    BasicBlock *From = Vote->getParent(), *To = Test->getParent();
    if (Cycles.getCycle(From) || Cycles.getCycle(To) ||
        !Dominators.dominates(To, From) || !PostDominators.dominates(From, To))
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
