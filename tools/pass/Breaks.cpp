//===- Breaks.cpp - The way out of a loop ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//

#include "Breaks.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/SSAUpdater.h"

using namespace llvm;

namespace rocov {

/// The switch of a block that has nothing else but PHI nodes, one of which
/// decides. Null if \p Block is none.
static SwitchInst *switchOnPhi(BasicBlock &Block) {
  auto *Switch = dyn_cast<SwitchInst>(Block.getTerminator());
  if (!Switch || &*Block.getFirstNonPHIIt() != Switch)
    return nullptr;
  auto *Chosen = dyn_cast<PHINode>(Switch->getCondition());
  return Chosen && Chosen->getParent() == &Block ? Switch : nullptr;
}

/// Lets \p From, which goes to \p Through only, go to \p To. Through only chooses
/// the way to To, and may be passed on the way to uses of its PHI nodes.
static void redirect(BasicBlock *From, BasicBlock *Through, BasicBlock *To) {
  for (PHINode &Phi : To->phis()) {
    Value *Coming = Phi.getIncomingValueForBlock(Through);
    auto *Merged = dyn_cast<PHINode>(Coming);
    if (Merged && Merged->getParent() == Through)
      Coming = Merged->getIncomingValueForBlock(From);
    Phi.addIncoming(Coming, From);
  }
  From->getTerminator()->replaceSuccessorWith(Through, To);
  SmallVector<Use *, 8> Outside;
  for (PHINode &Merged : Through->phis()) {
    Outside.clear();
    for (Use &Use : Merged.uses()) {
      auto *User = cast<Instruction>(Use.getUser());
      auto *Phi = dyn_cast<PHINode>(User);
      BasicBlock *Where = Phi ? Phi->getIncomingBlock(Use) : User->getParent();
      if (Where != Through)
        Outside.push_back(&Use);
    }
    if (Outside.empty())
      continue;
    SSAUpdater Values;
    Values.Initialize(Merged.getType(), Merged.getName());
    Values.AddAvailableValue(Through, &Merged);
    Values.AddAvailableValue(From, Merged.getIncomingValueForBlock(From));
    for (Use *Use : Outside)
      Values.RewriteUse(*Use);
  }
  Through->removePredecessor(From, /*KeepOneInputPHIs=*/true);
}

bool threadBreaks(Function &F) {
  bool Changed = false;
  for (BasicBlock &Block : F) {
    SwitchInst *Switch = switchOnPhi(Block);
    if (!Switch)
      continue;
    auto *Chosen = cast<PHINode>(Switch->getCondition());
    for (BasicBlock *From : to_vector(predecessors(&Block))) {
      auto *Case = dyn_cast<ConstantInt>(Chosen->getIncomingValueForBlock(From));
      if (!Case || From->getSingleSuccessor() != &Block ||
          Chosen->getNumIncomingValues() == 1)
        continue;
      BasicBlock *To = Switch->findCaseValue(Case)->getCaseSuccessor();
      // An instruction of a loop without end may use its own value.
      if (To == &Block)
        continue;
      redirect(From, &Block, To);
      Changed = true;
    }
    // One way in is left.
    if (Chosen->getNumIncomingValues() == 1) {
      FoldSingleEntryPHINodes(&Block);
      ConstantFoldTerminator(&Block);
    }
  }
  return Changed;
}

} // namespace rocov
