//===- RuntimeCalls.cpp - How clang 23 and later count --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//

#include "RuntimeCalls.h"

#include "CounterUpdates.h"
#include "GpuTarget.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace rocov {

bool markRuntimeCalls(Function &F, const GpuTarget &Target) {
  const DataLayout &DL = F.getParent()->getDataLayout();
  SmallVector<CallInst *, 16> Calls;
  for (Instruction &I : instructions(F))
    if (auto *Call = dyn_cast<CallInst>(&I))
      if (const Function *Callee = Call->getCalledFunction();
          Callee && Callee->getName() == "__llvm_profile_instrument_gpu" &&
          Call->arg_size() == 3 && counterAt(Call->getArgOperand(0), DL))
        Calls.push_back(Call);
  for (CallInst *Call : Calls) {
    IRBuilder<> B(Call);
    Value *Step = Call->getArgOperand(2);
    markUpdate(B, *counterAt(Call->getArgOperand(0), DL), Step);
    // Null if the compiler does not count such runs.
    if (auto Uniform = counterAt(Call->getArgOperand(1), DL)) {
      Value *IsUniform = Target.lanesMeet() ? markFull(B) : Target.isFull(B);
      auto *Constant = dyn_cast<ConstantInt>(Step);
      if (Constant && Constant->isOne())
        Step = IsUniform;
      else
        Step = B.CreateSelect(IsUniform, Step, B.getInt64(0));
      markUpdate(B, *Uniform, Step);
    }
    Call->eraseFromParent();
  }
  return !Calls.empty();
}

bool testFullMarks(Function &F, const GpuTarget &Target) {
  auto Marks = findFullMarks(F);
  for (CallInst *Mark : Marks) {
    IRBuilder<> B(Mark);
    Mark->replaceAllUsesWith(Target.isFull(B));
    Mark->eraseFromParent();
  }
  return !Marks.empty();
}

/// Sets the field of \p Record that \p Store writes.
static bool initialise(StoreInst &Store, const DataLayout &DL) {
  auto *Number = dyn_cast<ConstantInt>(Store.getValueOperand());
  if (!Number || !Number->getType()->isIntegerTy(16))
    return false;
  Value *Address = Store.getPointerOperand();
  APInt Offset(DL.getIndexTypeSizeInBits(Address->getType()), 0);
  auto *Record =
      dyn_cast<GlobalVariable>(Address->stripAndAccumulateConstantOffsets(
          DL, Offset, /*AllowNonInbounds=*/true));
  if (!Record || Record->getSection() != "__llvm_prf_data" ||
      !Record->hasInitializer())
    return false;
  auto *Type = dyn_cast<StructType>(Record->getValueType());
  if (!Type)
    return false;
  const StructLayout *Layout = DL.getStructLayout(Type);
  unsigned Field = Layout->getElementContainingOffset(Offset.getZExtValue());
  if (Layout->getElementOffset(Field) != Offset.getZExtValue() ||
      Type->getElementType(Field) != Number->getType())
    return false;
  SmallVector<Constant *, 12> Fields;
  for (unsigned I = 0; I != Type->getNumElements(); ++I)
    Fields.push_back(Record->getInitializer()->getAggregateElement(I));
  Fields[Field] = Number;
  Record->setInitializer(ConstantStruct::get(Type, Fields));
  return true;
}

bool settleWaveSize(Function &F) {
  const DataLayout &DL = F.getParent()->getDataLayout();
  bool Any = false;
  for (Instruction &I : make_early_inc_range(instructions(F)))
    if (auto *Store = dyn_cast<StoreInst>(&I); Store && initialise(*Store, DL)) {
      Store->eraseFromParent();
      Any = true;
    }
  return Any;
}

} // namespace rocov
