#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// 10·log10 of a power ratio.
func decibels(_ ratio: Double) -> Double { 10 * log10(ratio) }
