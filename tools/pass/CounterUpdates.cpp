//===- CounterUpdates.cpp - The places where code counts ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//

#include "CounterUpdates.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace rocov {

/// The names of the functions that marks call. No module defines them: the pass
/// replaces all calls.
constexpr StringLiteral UpdateMark = "__rocov_update", TurnMark = "__rocov_turn",
                        FullMark = "__rocov_full";

static bool isMark(const Instruction &I, StringRef Name) {
  auto *Call = dyn_cast<CallInst>(&I);
  const Function *Callee = Call ? Call->getCalledFunction() : nullptr;
  if (!Callee || !Callee->isDeclaration())
    return false;
  // Marks of updates have the width of the step in their name.
  StringRef Found = Callee->getName();
  return Found.consume_front(Name) && (Found.empty() || Found.starts_with("."));
}

/// The number that \p I adds to an address, and the address. Null pointers if it
/// is no update of a counter.
static std::pair<Value *, Value *> addition(Instruction &I) {
  if (isMark(I, UpdateMark))
    return {I.getOperand(1), I.getOperand(0)};
  auto *Add = dyn_cast<AtomicRMWInst>(&I);
  if (!Add || Add->getOperation() != AtomicRMWInst::Add || !Add->use_empty() ||
      !Add->getType()->isIntegerTy(64))
    return {nullptr, nullptr};
  return {Add->getValOperand(), Add->getPointerOperand()};
}

/// The operand of the step, in marks and in atomic additions.
constexpr unsigned StepOperand = 1;

Value *CounterUpdate::step() const { return stepUse(); }

Use &CounterUpdate::stepUse() const { return Add->getOperandUse(StepOperand); }

bool isCounterArray(const GlobalVariable &Variable) {
  StringRef Section = Variable.getSection();
  if (Section != "__llvm_prf_cnts" && Section != "__llvm_prf_ucnts")
    return false;
  auto *Words = dyn_cast<ArrayType>(Variable.getValueType());
  return Words && Words->getElementType()->isIntegerTy(64);
}

std::optional<Counter> counterAt(Value *Address, const DataLayout &DL) {
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

/// The counter that \p I adds to.
static std::optional<Counter> counterOf(Instruction &I) {
  Value *Address = addition(I).second;
  if (!Address)
    return std::nullopt;
  return counterAt(Address, I.getDataLayout());
}

bool isCounterUpdate(Instruction &I) { return counterOf(I).has_value(); }

SmallVector<CounterUpdate, 16> findCounterUpdates(Function &F) {
  SmallVector<CounterUpdate, 16> Updates;
  for (Instruction &I : instructions(F))
    if (auto Word = counterOf(I))
      Updates.push_back({&I, *Word});
  return Updates;
}

/// Declares the function that marks of this name call.
static FunctionCallee declareMark(Module &M, StringRef Name, FunctionType *Type) {
  FunctionCallee Mark = M.getOrInsertFunction(Name, Type);
  auto *F = cast<Function>(Mark.getCallee());
  F->setMemoryEffects(MemoryEffects::inaccessibleMemOnly());
  F->setDoesNotThrow();
  for (auto Kind : {Attribute::WillReturn, Attribute::NoSync, Attribute::NoFree,
                    Attribute::NoCallback})
    F->addFnAttr(Kind);
  return Mark;
}

void markUpdate(IRBuilderBase &B, const Counter &Word, Value *Step) {
  Module &M = *B.GetInsertBlock()->getModule();
  Value *Address = B.CreateConstInBoundsGEP2_64(Word.Array->getValueType(),
                                                Word.Array, 0, Word.Index);
  auto *Type = FunctionType::get(
      B.getVoidTy(), {Address->getType(), Step->getType()}, false);
  std::string Name = (UpdateMark + ".i" + Twine(Step->getType()->getIntegerBitWidth())).str();
  CallInst *Call = B.CreateCall(declareMark(M, Name, Type), {Address, Step});
  // Two of them would share an address that is no constant.
  Call->addFnAttr(Attribute::NoMerge);
}

/// Makes a mark whose result is an i1.
static Value *markFlag(IRBuilderBase &B, StringRef Name) {
  Module &M = *B.GetInsertBlock()->getModule();
  auto *Type = FunctionType::get(B.getInt1Ty(), false);
  CallInst *Call = B.CreateCall(declareMark(M, Name, Type));
  Call->addFnAttr(Attribute::NoMerge);
  return Call;
}

Value *markTurn(IRBuilderBase &B) { return markFlag(B, TurnMark); }

/// The marks of this name in \p F.
static SmallVector<CallInst *, 4> findMarks(Function &F, StringRef Name) {
  SmallVector<CallInst *, 4> Marks;
  for (Instruction &I : instructions(F))
    if (isMark(I, Name))
      Marks.push_back(cast<CallInst>(&I));
  return Marks;
}

SmallVector<CallInst *, 4> findTurns(Function &F) { return findMarks(F, TurnMark); }

Value *markFull(IRBuilderBase &B) { return markFlag(B, FullMark); }

bool isFullMark(const Value *Value) {
  auto *I = dyn_cast<Instruction>(Value);
  return I && isMark(*I, FullMark);
}

SmallVector<CallInst *, 4> findFullMarks(Function &F) {
  return findMarks(F, FullMark);
}

} // namespace rocov
