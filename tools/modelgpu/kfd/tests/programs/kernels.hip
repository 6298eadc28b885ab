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

GLOBAL void spin(volatile unsigned *flag) {
  while (*flag == 0) {
  }
}
}
