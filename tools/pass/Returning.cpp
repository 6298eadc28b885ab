//===- Returning.cpp - Which calls come back ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//

#include "Returning.h"

#include "GpuTarget.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace rocov {

Returning::Returning(const Module &M, const GpuTarget &Target)
    : Target(Target) {
  for (const Function &F : M)
    // Another definition of an inline function ends the thread as this one does.
    if (!F.isDeclaration() && !F.isInterposable())
      Comes.insert(&F);
  // Recursive functions stay if nothing else speaks against them.
  bool Changed = true;
  while (Changed) {
    Changed = false;
    for (const Function &F : M)
      if (Comes.contains(&F) && mayEndIn(F))
        Changed |= Comes.erase(&F);
  }
}

bool Returning::mayEndIn(const Function &F) const {
  for (const Instruction &I : instructions(F))
    if (isa<UnreachableInst>(I) || mayEndThread(I))
      return true;
  return false;
}

void Returning::replace(const Function &Old, const Function &New) {
  if (Comes.contains(&Old))
    Comes.insert(&New);
}

bool Returning::mayEndThread(const Instruction &I) const {
  auto *Call = dyn_cast<CallBase>(&I);
  if (!Call)
    return false;
  if (Call->doesNotReturn() || Target.mayEndThread(*Call))
    return true;
  if (Call->isInlineAsm())
    return false;
  const Function *Callee = Call->getCalledFunction();
  if (!Callee)
    return !Call->hasFnAttr(Attribute::WillReturn);
  if (Callee->isIntrinsic())
    return Call->getIntrinsicID() == Intrinsic::trap;
  return !Comes.contains(Callee) && !Call->hasFnAttr(Attribute::WillReturn);
}

} // namespace rocov
