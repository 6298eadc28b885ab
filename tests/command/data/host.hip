// Compiled by the tests without HIP's headers: host code of a HIP file.
int sign(int value) { return value < 0 ? -1 : 1; }
