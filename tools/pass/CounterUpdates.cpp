//===- CounterUpdates.cpp - The places where code counts ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//

#include "CounterUpdates.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace rocov {

Value *CounterUpdate::step() const { return Add->getValOperand(); }

bool isCounterArray(const GlobalVariable &Variable) {
  StringRef Section = Variable.getSection();
  if (Section != "__llvm_prf_cnts" && Section != "__llvm_prf_ucnts")
    return false;
  auto *Words = dyn_cast<ArrayType>(Variable.getValueType());
  return Words && Words->getElementType()->isIntegerTy(64);
}

/// The counter at a constant address.
static std::optional<Counter> counterAt(Value *Address, const DataLayout &DL) {
  APInt Offset(DL.getIndexTypeSizeInBits(Address->getType()), 0);
  Value *Base = Address->stripAndAccumulateConstantOffsets(
      DL, Offset, /*AllowNonInbounds=*/true);
  auto *Variable = dyn_cast<GlobalVariable>(Base);
  if (!Variable || !isCounterArray(*Variable) || Offset.isNegative())
    return std::nullopt;
  uint64_t Byte = Offset.getZExtValue();
  auto *Words = cast<ArrayType>(Variable->getValueType());
  if (Byte % 8 != 0 || Byte / 8 >= Words->getNumElements())
    return std::nullopt;
  return Counter{Variable, Byte / 8};
}

SmallVector<CounterUpdate, 16> findCounterUpdates(Function &F) {
  const DataLayout &DL = F.getParent()->getDataLayout();
  SmallVector<CounterUpdate, 16> Updates;
  for (Instruction &I : instructions(F)) {
    auto *Add = dyn_cast<AtomicRMWInst>(&I);
    if (!Add || Add->getOperation() != AtomicRMWInst::Add ||
        !Add->use_empty() || !Add->getType()->isIntegerTy(64))
      continue;
    if (auto Word = counterAt(Add->getPointerOperand(), DL))
      Updates.push_back({Add, *Word});
  }
  return Updates;
}

} // namespace rocov
