// Device code for the HSA test programs, without any header.
#define GLOBAL __attribute__((global))
#define DEVICE __attribute__((device))

extern "C" {
DEVICE int step = 5;

GLOBAL void add_step(int *values, int count) {
  int i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  if (i < count) values[i] += step;
}

// One step of a sequence that shows the order of two launches: x -> x * factor + 1.
GLOBAL void chain(unsigned *value, unsigned factor) { *value = *value * factor + 1; }

// Each wave stores HW_ID, and XCC_ID in the high half.
GLOBAL void place(unsigned long long *places) {
  const unsigned all_bits = 31 << 11, hw_id = 4, xcc_id = 20;
  unsigned xcc = 0;
#ifdef __gfx942__
  xcc = __builtin_amdgcn_s_getreg(xcc_id | all_bits);
#endif
  unsigned place = __builtin_amdgcn_s_getreg(hw_id | all_bits);
  unsigned wave = __builtin_amdgcn_workitem_id_x() / 64;
  unsigned waves = __builtin_amdgcn_workgroup_size_x() / 64;
  places[__builtin_amdgcn_workgroup_id_x() * waves + wave] = place | (unsigned long long)xcc << 32;
}

GLOBAL void spin(volatile unsigned *flag) {
  while (*flag == 0) {
  }
}
}
