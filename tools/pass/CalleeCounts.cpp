//===- CalleeCounts.cpp - Counts that callees return ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A function that is not inlined would bring its counts to memory in each call.
/// Here it returns them beside its result, in registers, and they become counts
/// of the caller. That goes on up to kernels, recursive functions, and functions
/// with many counters.
///
/// If others may call the function (by its address, or from another module), it
/// remains: it calls the one that returns counts, and brings them to memory.
///
//===----------------------------------------------------------------------===//

#include "CalleeCounts.h"

#include "Cycles.h"
#include "Flush.h"
#include "Returning.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SCCIterator.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/CallGraph.h"
#include "llvm/Analysis/UniformityAnalysis.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

#include <vector>

using namespace llvm;

namespace rocov {

/// The most values that a function returns for its counts: they take registers
/// of the caller.
constexpr unsigned MaxReturned = 6;

namespace {

/// A count that goes from a function to its caller.
struct ReturnedCount {
  Counter Word;
  /// The step if it is a constant (i1, i32 or i64): no value is returned.
  Constant *Always;
  /// Set if it counts the runs of the return by all lanes. These are the lanes that go
  /// on behind the call, so no value is returned either.
  bool IsFull;
  /// The field of the returned values otherwise, and in it the bit of an i1.
  unsigned Field;
  unsigned Bit;
  bool IsBit;
};

/// Returns whether \p Count needs a value of the callee.
bool isReturned(const ReturnedCount &Count) {
  return !Count.Always && !Count.IsFull;
}

class ReturningCounts {
public:
  ReturningCounts(Function &F, Returning &Comes) : F(F), Comes(Comes) {}

  /// Finds the calls that can call another function instead. Returns whether
  /// there is one.
  bool findCalls();
  /// Takes the marks before the only return for the counts to be returned.
  /// Returns whether there are some, and there is room for them in a caller.
  bool choose();
  /// Makes the function that returns the counts, of the code of the original.
  void split();
  void replaceCalls();
  /// Makes the original function call the new one, or removes it.
  void finish();

  /// The calls to be replaced.
  ArrayRef<CallInst *> calls() const { return Calls; }

private:
  void chooseFields();
  bool fitsIn(Function &Caller) const;
  CallInst *callInstead(IRBuilderBase &B, ArrayRef<Value *> Arguments);
  void markCountsOf(CallInst &Call, Instruction *Before);

  Function &F;
  Returning &Comes;
  Function *Split = nullptr;
  SmallVector<CallInst *, 8> Calls;
  ReturnInst *Return = nullptr;
  SmallVector<CounterUpdate, 16> Updates;
  SmallVector<ReturnedCount, 8> Counts;
  /// The types of the fields, and their values before the return. Bits share an
  /// i32: then it is the bits.
  SmallVector<Type *, 4> Types;
  SmallVector<SmallVector<Value *, 4>, 4> Fields;
  bool HasResult = false;
};

} // namespace

/// Returns whether \p F may get another signature.
static bool canSplit(const Function &F) {
  if (F.isDeclaration() || F.isInterposable() || F.isVarArg() ||
      F.hasAvailableExternallyLinkage() || F.hasOptNone() ||
      F.hasFnAttribute(Attribute::Naked) || F.hasPersonalityFn() ||
      F.hasPrefixData() || F.hasPrologueData())
    return false;
  switch (F.getCallingConv()) {
  case CallingConv::C:
  case CallingConv::Fast:
  case CallingConv::Cold:
    break;
  default:
    return false;
  }
  return none_of(F, [](const BasicBlock &Block) {
    return Block.hasAddressTaken() || Block.getTerminatingMustTailCall();
  });
}

bool ReturningCounts::findCalls() {
  for (Use &Use : F.uses()) {
    auto *Call = dyn_cast<CallInst>(Use.getUser());
    if (Call && Call->isCallee(&Use) && !Call->isMustTailCall() &&
        Call->getFunctionType() == F.getFunctionType() &&
        Call->getCallingConv() == F.getCallingConv() &&
        !Call->hasOperandBundles() &&
        !Call->getFunction()->hasAvailableExternallyLinkage() &&
        !Call->getFunction()->hasOptNone())
      Calls.push_back(Call);
  }
  return !Calls.empty();
}

void ReturningCounts::chooseFields() {
  Type *Int32 = Type::getInt32Ty(F.getContext());
  for (const CounterUpdate &Update : Updates) {
    Value *Step = Update.step();
    bool IsFull = isFullMark(Step) &&
                  cast<Instruction>(Step)->getParent() == Return->getParent();
    ReturnedCount Count = {Update.Word, dyn_cast<Constant>(Step), IsFull,
                           0, 0, Step->getType()->isIntegerTy(1)};
    if (isReturned(Count)) {
      // Counters of one block share a value.
      auto Has = [&](ArrayRef<Value *> Field) { return is_contained(Field, Step); };
      auto *At = find_if(Fields, Has);
      if (At == Fields.end() && Count.IsBit)
        At = find_if(Fields, [](ArrayRef<Value *> Field) {
          return Field.front()->getType()->isIntegerTy(1) && Field.size() < 32;
        });
      Count.Field = At - Fields.begin();
      if (At == Fields.end()) {
        Fields.push_back({Step});
        Types.push_back(Count.IsBit ? Int32 : Step->getType());
      } else if (!Has(*At)) {
        At->push_back(Step);
      }
      Count.Bit = find(Fields[Count.Field], Step) - Fields[Count.Field].begin();
    }
    Counts.push_back(Count);
  }
}

/// Returns whether \p Caller has registers for the counts of all its calls.
bool ReturningCounts::fitsIn(Function &Caller) const {
  unsigned Returned = count_if(Counts, isReturned);
  CycleInfo Cycles;
  Cycles.compute(Caller);
  unsigned Bits = 0, Numbers = 0;
  auto Add = [&](const BasicBlock *Block, unsigned Values) {
    (cycleAround(Cycles, Block) ? Numbers : Bits) += Values;
  };
  SmallPtrSet<BasicBlock *, 16> Blocks;
  for (const CounterUpdate &Update : findCounterUpdates(Caller)) {
    BasicBlock *Block = Update.Add->getParent();
    if (!isa<Constant>(Update.step()) || Blocks.insert(Block).second)
      Add(Block, 1);
  }
  for (const CallInst *Call : Calls)
    if (Call->getFunction() == &Caller)
      Add(Call->getParent(), Returned);
  return Bits <= MaxBits && Numbers <= MaxNumbers;
}

bool ReturningCounts::choose() {
  for (BasicBlock &Block : F)
    if ((Return = dyn_cast<ReturnInst>(Block.getTerminator())))
      break;
  if (!Return)
    return false;
  // Marks before a call that may end the thread must stay there.
  const Instruction *First = Return;
  while (First->getPrevNode() && !Comes.mayEndThread(*First->getPrevNode()))
    First = First->getPrevNode();
  for (const CounterUpdate &Update : findCounterUpdates(F))
    if (Update.Add->getParent() == Return->getParent() &&
        (Update.Add == First || First->comesBefore(Update.Add)))
      Updates.push_back(Update);
  chooseFields();
  if (Updates.empty() || Fields.size() > MaxReturned)
    return false;
  SmallDenseMap<Function *, bool> Fits;
  for (CallInst *Call : Calls)
    Fits.try_emplace(Call->getFunction(), false);
  for (auto &[Caller, Does] : Fits)
    Does = fitsIn(*Caller);
  erase_if(Calls, [&](CallInst *Call) { return !Fits[Call->getFunction()]; });
  return !Calls.empty();
}

/// The attributes that still hold if a function of \p Arguments arguments has
/// another result.
static AttributeList forOtherResult(AttributeList Old, unsigned Arguments,
                                    LLVMContext &Context) {
  SmallVector<AttributeSet, 8> OfArguments;
  for (unsigned I = 0; I != Arguments; ++I)
    OfArguments.push_back(
        Old.getParamAttrs(I)
            .removeAttribute(Context, Attribute::Returned)
            // Only functions without a result have it.
            .removeAttribute(Context, Attribute::StructRet));
  return AttributeList::get(Context, Old.getFnAttrs(), AttributeSet(),
                            OfArguments);
}

void ReturningCounts::split() {
  // {the result, the fields...}
  LLVMContext &Context = F.getContext();
  HasResult = !F.getReturnType()->isVoidTy();
  SmallVector<Type *, 8> Members(Types.begin(), Types.end());
  if (HasResult)
    Members.insert(Members.begin(), F.getReturnType());
  Type *Result = Members.empty() ? Type::getVoidTy(Context)
                                 : StructType::get(Context, Members);
  IRBuilder<> B(Return);
  Value *Values = PoisonValue::get(Result);
  if (HasResult)
    Values = B.CreateInsertValue(Values, Return->getReturnValue(), 0);
  for (unsigned I = 0; I != Fields.size(); ++I) {
    Value *Field = Fields[I].front();
    if (Field->getType()->isIntegerTy(1)) {
      Field = B.getInt32(0);
      for (unsigned Bit = 0; Bit != Fields[I].size(); ++Bit) {
        Value *Wide = B.CreateZExt(Fields[I][Bit], B.getInt32Ty());
        Field = B.CreateOr(Field, B.CreateShl(Wide, Bit));
      }
    }
    Values = B.CreateInsertValue(Values, Field, HasResult + I);
  }
  if (Members.empty())
    B.CreateRetVoid();
  else
    B.CreateRet(Values);
  Return->eraseFromParent();
  for (const CounterUpdate &Update : Updates)
    Update.Add->eraseFromParent();

  auto *Type = FunctionType::get(Result, F.getFunctionType()->params(), false);
  Split = Function::Create(Type, GlobalValue::InternalLinkage,
                           F.getAddressSpace(), F.getName() + ".counts");
  F.getParent()->getFunctionList().insert(F.getIterator(), Split);
  Split->setAttributes(forOtherResult(F.getAttributes(), F.arg_size(), Context));
  Split->setCallingConv(F.getCallingConv());
  Split->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
  Split->setSubprogram(F.getSubprogram());
  F.setSubprogram(nullptr);
  Split->splice(Split->begin(), &F);
  for (auto [Old, New] : zip(F.args(), Split->args())) {
    New.takeName(&Old);
    Old.replaceAllUsesWith(&New);
  }
  Comes.replace(F, *Split);
}

CallInst *ReturningCounts::callInstead(IRBuilderBase &B,
                                       ArrayRef<Value *> Arguments) {
  CallInst *Call = B.CreateCall(Split, Arguments);
  Call->setCallingConv(Split->getCallingConv());
  return Call;
}

/// Marks before \p Before that the counts that \p Call returned are due.
void ReturningCounts::markCountsOf(CallInst &Call, Instruction *Before) {
  IRBuilder<> B(Before);
  SmallVector<Value *, 4> Values;
  for (unsigned I = 0; I != Fields.size(); ++I)
    Values.push_back(B.CreateExtractValue(&Call, HasResult + I));
  Value *Full = nullptr;
  for (const ReturnedCount &Count : Counts) {
    Value *Step = Count.Always;
    if (Count.IsFull) {
      Step = Full ? Full : Full = markFull(B);
    } else if (!Step) {
      Step = Values[Count.Field];
      if (Count.IsBit)
        Step = B.CreateTrunc(B.CreateLShr(Step, Count.Bit), B.getInt1Ty());
    }
    markUpdate(B, Count.Word, Step);
  }
}

void ReturningCounts::replaceCalls() {
  LLVMContext &Context = F.getContext();
  for (CallInst *Old : Calls) {
    IRBuilder<> B(Old);
    CallInst *New = callInstead(B, SmallVector<Value *, 8>(Old->args()));
    New->setAttributes(
        forOtherResult(Old->getAttributes(), Old->arg_size(), Context));
    New->setTailCallKind(Old->getTailCallKind());
    New->copyMetadata(*Old, {LLVMContext::MD_dbg, LLVMContext::MD_prof});
    markCountsOf(*New, Old);
    if (HasResult) {
      B.SetInsertPoint(Old);
      Value *Result = B.CreateExtractValue(New, 0);
      Result->takeName(Old);
      Old->replaceAllUsesWith(Result);
    }
    Old->eraseFromParent();
  }
}

void ReturningCounts::finish() {
  if (F.hasLocalLinkage() && F.use_empty()) {
    Split->takeName(&F);
    F.eraseFromParent();
    return;
  }
  // Others call it by its address, or may do so from elsewhere.
  IRBuilder<> B(BasicBlock::Create(F.getContext(), "", &F));
  SmallVector<Value *, 8> Arguments;
  for (Argument &It : F.args())
    Arguments.push_back(&It);
  CallInst *Call = callInstead(B, Arguments);
  ReturnInst *Return =
      HasResult ? B.CreateRet(B.CreateExtractValue(Call, 0)) : B.CreateRetVoid();
  markCountsOf(*Call, Return);
}

/// The functions of \p M that do not call themselves, callees before their
/// callers.
static std::vector<Function *> calleesFirst(Module &M) {
  CallGraph Calls(M);
  std::vector<Function *> All;
  for (auto It = scc_begin(&Calls); !It.isAtEnd(); ++It)
    if (!It.hasCycle())
      if (Function *F = It->front()->getFunction())
        All.push_back(F);
  return All;
}

void returnCounts(Module &M, const GpuTarget &Target, Returning &Comes,
                  FunctionAnalysisManager &AM, FunctionPassManager &Promotion) {
  SmallPtrSet<Function *, 16> Callers;
  for (Function *F : calleesFirst(M)) {
    ReturningCounts Counts(*F, Comes);
    bool MayReturn = canSplit(*F) && Counts.findCalls();
    if (!MayReturn && !Callers.contains(F))
      continue;
    CountedFunction Counted(*F);
    if (Counted.Updates.empty())
      continue;
    // The marks of inlined functions and of callees go before the return, too.
    Counted.splitAtEnds(Comes);
    AM.invalidate(*F, PreservedAnalyses::none());
    if (Callers.contains(F))
      Counted.testBeforeLoops(Target, Comes,
                              AM.getResult<UniformityInfoAnalysis>(*F));
    accumulate(Counted, Target, LoopFacts::of(*F, AM), /*Known=*/nullptr,
               [&](Instruction *Before, ArrayRef<LaneCount> Lanes) {
                 markCounts(Counted.Words, Before, Lanes);
               });
    AM.invalidate(*F, PreservedAnalyses::none());
    Promotion.run(*F, AM);
    AM.invalidate(*F, PreservedAnalyses::none());
    if (!MayReturn || !Counts.choose())
      continue;
    for (CallInst *Call : Counts.calls()) {
      Callers.insert(Call->getFunction());
      AM.invalidate(*Call->getFunction(), PreservedAnalyses::none());
    }
    Counts.split();
    Counts.replaceCalls();
    AM.clear(*F, F->getName());
    Counts.finish();
  }
}

} // namespace rocov
