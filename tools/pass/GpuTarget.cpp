//===- GpuTarget.cpp - What waves can do together -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//===----------------------------------------------------------------------===//

#include "GpuTarget.h"

#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

namespace rocov {

GpuTarget::~GpuTarget() = default;

namespace {

class Amdgcn final : public GpuTarget {
public:
  Value *active(IRBuilderBase &B) const override {
    return ballot(B, B.getTrue(), nullptr);
  }

  Value *ballot(IRBuilderBase &B, Value *Condition, Value *) const override {
    return B.CreateIntrinsic(Intrinsic::amdgcn_ballot, {B.getInt64Ty()},
                             {Condition});
  }

  Value *isFull(IRBuilderBase &B) const override {
    return holdsInAll(B, B.getTrue());
  }

  Value *holdsInAll(IRBuilderBase &B, Value *Condition) const override {
    Value *Missing = B.CreateZExt(B.CreateSub(B.getInt32(64), waveSize(B)),
                                  B.getInt64Ty());
    Value *All = B.CreateLShr(B.getInt64(~0ULL), Missing);
    return B.CreateICmpEQ(ballot(B, Condition, nullptr), All);
  }

  Value *waveSize(IRBuilderBase &B) const override {
    return B.CreateIntrinsic(Intrinsic::amdgcn_wavefrontsize,
                             ArrayRef<Type *>(), ArrayRef<Value *>());
  }

  bool isFullTest(const Value *Value) const override {
    if (!isVote(Value))
      return false;
    auto *Vote = cast<CallBase>(cast<ICmpInst>(Value)->getOperand(0));
    auto *Condition = dyn_cast<ConstantInt>(Vote->getArgOperand(0));
    return Condition && Condition->isOne();
  }

  bool isVote(const Value *Value) const override {
    auto *Test = dyn_cast<ICmpInst>(Value);
    if (!Test || Test->getPredicate() != ICmpInst::ICMP_EQ)
      return false;
    auto *Vote = dyn_cast<IntrinsicInst>(Test->getOperand(0));
    return Vote && Vote->getIntrinsicID() == Intrinsic::amdgcn_ballot;
  }

  Value *votes(Value *Vote) const override {
    return cast<CallBase>(cast<ICmpInst>(Vote)->getOperand(0))->getArgOperand(0);
  }

  bool lanesMeet() const override { return true; }

  Value *lanesBelow(IRBuilderBase &B, Value *Mask) const override {
    Value *Low = B.CreateTrunc(Mask, B.getInt32Ty());
    Value *High = B.CreateTrunc(B.CreateLShr(Mask, 32), B.getInt32Ty());
    Value *Below = B.CreateIntrinsic(Intrinsic::amdgcn_mbcnt_lo, {},
                                     {Low, B.getInt32(0)});
    return B.CreateIntrinsic(Intrinsic::amdgcn_mbcnt_hi, {}, {High, Below});
  }

  bool hasWriteLane() const override { return true; }

  Value *lane(IRBuilderBase &B) const override {
    return lanesBelow(B, B.getInt64(~0ULL));
  }

  Value *writeLane(IRBuilderBase &B, Value *Old, unsigned Lane,
                   Value *Value) const override {
    return B.CreateIntrinsic(Intrinsic::amdgcn_writelane, {Old->getType()},
                             {Value, B.getInt32(Lane), Old});
  }

  Value *anyLane(IRBuilderBase &B, Value *Value, llvm::Value *) const override {
    return B.CreateIntrinsic(Intrinsic::amdgcn_readfirstlane,
                             {Value->getType()}, {Value});
  }

  bool isOfAnyLane(const Value *Value) const override {
    auto *Call = dyn_cast<IntrinsicInst>(Value);
    return Call && Call->getIntrinsicID() == Intrinsic::amdgcn_readfirstlane;
  }

  SmallVector<Value *, 8> sums(IRBuilderBase &B, ArrayRef<Value *> Values,
                               Value *) const override;
  bool sumsAtOnce(const Function &) const override { return false; }
  Value *byteOf(IRBuilderBase &, Value *, Value *, Value *) const override {
    llvm_unreachable("sums are not at once");
  }
  bool hasSums(const Function &F) const override;
  Value *canSum(IRBuilderBase &B, Value *Votes, Value *) const override {
    return B.CreateICmpEQ(Votes, B.getInt64(~0ULL));
  }
  Value *unit(IRBuilderBase &B, const Function &F,
              unsigned Bits) const override;

  /// A cache line of the L2.
  unsigned copyAlignment() const override { return 128; }

  StringRef deviceScope() const override { return "agent"; }

  bool mayEndThread(const CallBase &Call) const override {
    if (Call.isInlineAsm()) {
      auto *Asm = cast<InlineAsm>(Call.getCalledOperand());
      StringRef Text = Asm->getAsmString();
      return Text.contains("s_endpgm") || Text.contains("s_trap") ||
             Text.contains("s_setpc");
    }
    return Call.getIntrinsicID() == Intrinsic::amdgcn_endpgm;
  }

private:
  /// Reads \p Bits bits of a hardware register from bit \p First on.
  static Value *hardware(IRBuilderBase &B, unsigned Register, unsigned First,
                         unsigned Bits) {
    // The immediate of s_getreg_b32: 6 bits of register, 5 of first bit, 5 of
    // width minus 1.
    unsigned Field = Register | First << 6 | (Bits - 1) << 11;
    return B.CreateIntrinsic(Intrinsic::amdgcn_s_getreg, {},
                             {B.getInt32(Field)});
  }
};

/// The number of a gfx name: "gfx90a" is 0x90a.
unsigned gfxNumber(const Function &F) {
  StringRef Name = F.getFnAttribute("target-cpu").getValueAsString();
  unsigned Number = 0;
  if (!Name.consume_front("gfx") || Name.getAsInteger(16, Number))
    return 0;
  return Number;
}

/// The steps of a sum over 64 lanes on gfx9: within rows of 16 lanes, then over
/// the rows. The last lane gets the sum. ("Data Parallel Primitives" of the ISA
/// documents; the masks say which rows take part.)
struct DppStep {
  unsigned Control;
  unsigned Rows;
};
constexpr DppStep SumSteps[] = {
    {0x111, 0xf}, // row_shr:1
    {0x112, 0xf}, // row_shr:2
    {0x114, 0xf}, // row_shr:4
    {0x118, 0xf}, // row_shr:8
    {0x142, 0xa}, // row_bcast:15
    {0x143, 0xc}, // row_bcast:31
};

SmallVector<Value *, 8> Amdgcn::sums(IRBuilderBase &B, ArrayRef<Value *> Values,
                                     Value *) const {
  SmallVector<Value *, 8> Sums(Values);
  // Two instructions must lie between two steps of a sum. Steps of other sums do.
  for (DppStep Step : SumSteps)
    for (Value *&Sum : Sums) {
      Value *Other = B.CreateIntrinsic(
          Intrinsic::amdgcn_update_dpp, {B.getInt32Ty()},
          {B.getInt32(0), Sum, B.getInt32(Step.Control), B.getInt32(Step.Rows),
           B.getInt32(0xf), B.getFalse()});
      Sum = B.CreateAdd(Sum, Other);
    }
  for (Value *&Sum : Sums)
    Sum = B.CreateIntrinsic(Intrinsic::amdgcn_readlane, {B.getInt32Ty()},
                            {Sum, B.getInt32(63)});
  return Sums;
}

bool Amdgcn::hasSums(const Function &F) const {
  // gfx8 and gfx9 have waves of 64 lanes, and broadcasts between rows.
  unsigned Gfx = gfxNumber(F);
  return Gfx >= 0x800 && Gfx < 0x1000;
}

/// Registers and fields: LLVM's SIDefines.h (Hwreg) and the "Hardware Status
/// Registers" of AMD's ISA documents.
Value *Amdgcn::unit(IRBuilderBase &B, const Function &F, unsigned Bits) const {
  if (Bits == 0)
    return B.getInt32(0);
  Value *All = B.getInt32((1u << Bits) - 1);
  unsigned Gfx = gfxNumber(F);
  if (Gfx >= 0x1000) {
    // HW_ID1: WGP_ID 13:10, SA_ID 16, SE_ID from bit 18 on.
    constexpr unsigned HwId1 = 23;
    Value *Wgp = hardware(B, HwId1, 10, 4);
    Value *Array = hardware(B, HwId1, 16, 1);
    Value *Engine = hardware(B, HwId1, 18, 3);
    Value *Upper = B.CreateOr(B.CreateShl(Engine, 1), Array);
    return B.CreateAnd(B.CreateOr(B.CreateShl(Upper, 4), Wgp), All);
  }
  // HW_ID: CU_ID 11:8, SE_ID from bit 13 on, 3 bits since gfx90a.
  constexpr unsigned HwId = 4, XccId = 20;
  if (Gfx < 0x940)
    // With SH_ID between them, which is 0: one instruction instead of five.
    return hardware(B, HwId, 8, std::min(Bits, Gfx >= 0x90a ? 8u : 7u));
  // An XCC has four engines of at most ten CUs. This way, few of the 304 CUs of
  // a whole GPU share one of 256 copies.
  Value *Cu = hardware(B, HwId, 8, 4);
  Value *Engine = hardware(B, HwId, 13, 3);
  Value *Xcc = hardware(B, XccId, 0, 4);
  Value *Engines = B.CreateAdd(B.CreateShl(Xcc, 2), Engine);
  Value *Unit = B.CreateAdd(B.CreateMul(Engines, B.getInt32(10)), Cu);
  return B.CreateAnd(Unit, All);
}

class Nvptx final : public GpuTarget {
public:
  Value *active(IRBuilderBase &B) const override {
    auto *Type = FunctionType::get(B.getInt32Ty(), false);
    auto *Asm = InlineAsm::get(Type, "activemask.b32 $0;", "=r",
                               /*hasSideEffects=*/true);
    CallInst *Call = B.CreateCall(Type, Asm);
    Call->setConvergent();
    Call->setDoesNotThrow();
    return B.CreateZExt(Call, B.getInt64Ty());
  }

  Value *ballot(IRBuilderBase &B, Value *Condition,
                Value *Mask) const override {
    Value *Votes =
        B.CreateIntrinsic(Intrinsic::nvvm_vote_ballot_sync, {},
                          {B.CreateTrunc(Mask, B.getInt32Ty()), Condition});
    return B.CreateZExt(Votes, B.getInt64Ty());
  }

  Value *isFull(IRBuilderBase &B) const override {
    return B.CreateICmpEQ(active(B), B.getInt64(~0U));
  }

  Value *holdsInAll(IRBuilderBase &, Value *) const override {
    llvm_unreachable("lanes need not meet");
  }

  Value *waveSize(IRBuilderBase &B) const override { return B.getInt32(32); }

  bool isFullTest(const Value *) const override { return false; }
  bool isVote(const Value *) const override { return false; }
  Value *votes(Value *) const override { llvm_unreachable("there are none"); }

  /// Lanes have had program counters of their own since Volta.
  bool lanesMeet() const override { return false; }

  Value *lanesBelow(IRBuilderBase &B, Value *Mask) const override {
    Value *Below = read(B, Intrinsic::nvvm_read_ptx_sreg_lanemask_lt);
    Value *Lanes = B.CreateTrunc(Mask, B.getInt32Ty());
    return B.CreateUnaryIntrinsic(Intrinsic::ctpop, B.CreateAnd(Lanes, Below));
  }

  bool hasWriteLane() const override { return false; }

  Value *lane(IRBuilderBase &B) const override {
    return read(B, Intrinsic::nvvm_read_ptx_sreg_laneid);
  }

  Value *writeLane(IRBuilderBase &, Value *, unsigned,
                   Value *) const override {
    llvm_unreachable("PTX has no such instruction");
  }

  Value *anyLane(IRBuilderBase &B, Value *Value,
                 llvm::Value *Mask) const override {
    Type *Int32 = B.getInt32Ty();
    llvm::Value *Lanes = B.CreateTrunc(Mask, Int32);
    llvm::Value *First =
        B.CreateIntrinsic(Intrinsic::cttz, {Int32}, {Lanes, B.getTrue()});
    auto Shuffle = [&](llvm::Value *Word) {
      return B.CreateIntrinsic(Intrinsic::nvvm_shfl_sync_idx_i32, {},
                               {Lanes, Word, First, B.getInt32(31)});
    };
    if (Value->getType() == Int32)
      return Shuffle(Value);
    llvm::Value *Low = Shuffle(B.CreateTrunc(Value, Int32));
    llvm::Value *High = Shuffle(B.CreateTrunc(B.CreateLShr(Value, 32), Int32));
    Type *Int64 = B.getInt64Ty();
    return B.CreateOr(B.CreateShl(B.CreateZExt(High, Int64), 32),
                      B.CreateZExt(Low, Int64));
  }

  bool isOfAnyLane(const Value *) const override { return false; }

  SmallVector<Value *, 8> sums(IRBuilderBase &B, ArrayRef<Value *> Values,
                               Value *Mask) const override {
    SmallVector<Value *, 8> Sums;
    for (Value *It : Values)
      Sums.push_back(
          B.CreateIntrinsic(Intrinsic::nvvm_redux_sync_add, {},
                            {It, B.CreateTrunc(Mask, B.getInt32Ty())}));
    return Sums;
  }

  bool sumsAtOnce(const Function &F) const override {
    // sm_80 has redux.sync.
    StringRef Name = F.getFnAttribute("target-cpu").getValueAsString();
    unsigned Number = 0;
    return Name.consume_front("sm_") && !Name.consumeInteger(10, Number) &&
           Number >= 80;
  }

  Value *byteOf(IRBuilderBase &B, Value *Low, Value *High,
                Value *Number) const override {
    return B.CreateIntrinsic(Intrinsic::nvvm_prmt, {}, {Low, High, Number});
  }

  bool hasSums(const Function &F) const override { return sumsAtOnce(F); }

  Value *canSum(IRBuilderBase &B, Value *Votes, Value *Mask) const override {
    return B.CreateICmpEQ(Votes, Mask);
  }

  Value *unit(IRBuilderBase &B, const Function &,
              unsigned Bits) const override {
    Value *Sm = read(B, Intrinsic::nvvm_read_ptx_sreg_smid);
    return B.CreateAnd(Sm, B.getInt32((1u << Bits) - 1));
  }

  /// Copies that are closer share slices of the L2 cache: on an H200, a stencil
  /// takes 1.3 times its time with 128 bytes, and 1.15 times with 512.
  unsigned copyAlignment() const override { return 512; }

  StringRef deviceScope() const override { return "device"; }

  bool mayEndThread(const CallBase &Call) const override {
    if (Call.isInlineAsm()) {
      auto *Asm = cast<InlineAsm>(Call.getCalledOperand());
      StringRef Text = Asm->getAsmString();
      return Text.contains("exit") || Text.contains("trap");
    }
    return Call.getIntrinsicID() == Intrinsic::nvvm_exit;
  }

private:
  /// Reads a special register.
  static Value *read(IRBuilderBase &B, Intrinsic::ID Register) {
    return B.CreateIntrinsic(Register, ArrayRef<Type *>(), ArrayRef<Value *>());
  }
};

} // namespace

std::unique_ptr<GpuTarget> GpuTarget::of(const Module &M) {
  // LLVM 21 made a class of the name.
  Triple Target(M.getTargetTriple());
  if (Target.isAMDGCN())
    return std::make_unique<Amdgcn>();
  if (Target.isNVPTX() && Target.isArch64Bit())
    return std::make_unique<Nvptx>();
  return nullptr;
}

} // namespace rocov
