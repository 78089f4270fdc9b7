/// Constants of ITU-T G.722, tables 7 to 21 of the Recommendation.
enum G722Tables {
  static let qmf: InlineArray<12, Int32> = [3, -11, 12, 32, -210, 951, 3876, -805, 362, -156, 53, -11]
  /// Decision levels of the low band, and the codes of the intervals for negative and positive differences.
  static let q6: InlineArray<32, Int32> = [
    0, 35, 72, 110, 150, 190, 233, 276, 323, 370, 422, 473, 530, 587, 650, 714, 786, 858, 940, 1023, 1121, 1219, 1339, 1458, 1612,
    1765, 1980, 2195, 2557, 2919, 0, 0,
  ]
  static let negativeLow: InlineArray<32, UInt8> = [
    0, 63, 62, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 0,
  ]
  static let positiveLow: InlineArray<32, UInt8> = [
    0, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33, 32, 0,
  ]
  /// Inverse quantisers of 6, 4 (low band) and 2 bits (high band).
  static let qm6: InlineArray<64, Int32> = [
    -136, -136, -136, -136, -24808, -21904, -19008, -16704, -14984, -13512, -12280, -11192, -10232, -9360, -8576, -7856, -7192,
    -6576, -6000, -5456, -4944, -4464, -4008, -3576, -3168, -2776, -2400, -2032, -1688, -1360, -1040, -728, 24808, 21904, 19008,
    16704, 14984, 13512, 12280, 11192, 10232, 9360, 8576, 7856, 7192, 6576, 6000, 5456, 4944, 4464, 4008, 3576, 3168, 2776, 2400,
    2032, 1688, 1360, 1040, 728, 432, 136, -432, -136,
  ]
  static let qm4: InlineArray<16, Int32> = [
    0, -20456, -12896, -8968, -6288, -4240, -2584, -1200, 20456, 12896, 8968, 6288, 4240, 2584, 1200, 0,
  ]
  static let qm2: InlineArray<4, Int32> = [-7408, -1616, 7408, 1616]
  /// Steps of the logarithmic scale factors by code.
  static let lowSteps: InlineArray<16, Int32> = [
    -60, 3042, 1198, 538, 334, 172, 58, -30, 3042, 1198, 538, 334, 172, 58, -30, -60,
  ]
  /// How much more frequent a code of the low band is in speech than among random octets, in bits by 100; measured on 29 voices,
  /// eSpeak NG's and one recording.
  static let evidence: InlineArray<16, Int32> = [
    -696, -619, -337, -186, -84, -2, 70, 132, -543, -306, -167, -65, 34, 124, 160, 113,
  ]
  static let highSteps: InlineArray<4, Int32> = [798, -214, 798, -214]
  static let inverseLogarithm: InlineArray<32, Int32> = [
    2048, 2093, 2139, 2186, 2233, 2282, 2332, 2383, 2435, 2489, 2543, 2599, 2656, 2714, 2774, 2834, 2896, 2960, 3025, 3091, 3158,
    3228, 3298, 3371, 3444, 3520, 3597, 3676, 3756, 3838, 3922, 4008,
  ]
}
