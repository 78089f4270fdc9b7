#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// How a codec's quality falls with loss, the E-model's equipment impairment (ITU-T G.113 Appendix I).
public struct CodecImpairment: Sendable, Equatable {
  /// Ie: without loss.
  public var base: Double
  /// Bpl: robustness against random packet loss; larger is better.
  public var lossRobustness: Double
  public init(base: Double, lossRobustness: Double) { (self.base, self.lossRobustness) = (base, lossRobustness) }

  /// G.711 with concealment of Appendix I's class (G.113 Appendix I).
  public static let g711 = CodecImpairment(base: 0, lossRobustness: 25.1)
  /// Opus has no row in G.113; these are GSM-EFR's, a CELP codec of narrow band with built-in concealment: rather too low than
  /// too high.
  public static let opus = CodecImpairment(base: 5, lossRobustness: 10)
}

/// The transmission rating of ITU-T G.107 (the E-model) for one direction of a call, with the standard's default values for
/// everything a gateway cannot see (levels, noise, echo), which give R = 93.2 without impairment.
///
///     R = 93.2 − Idd(delay) − Ie,eff(codec, loss, burst ratio)
///
/// Pure and allocation-free, about 50 ns. Not for wideband (G.107.1), nor a substitute for PESQ on recorded audio.
public struct OpinionScore: Sendable, Equatable {
  /// R, 0…100.
  public let rating: Double

  /// - Parameters:
  ///   - lossFraction: audio neither received in time nor repaired, 0…1.
  ///   - burstRatio: mean length of loss runs over that of random loss; 1 is random. G.107 is valid for 1…2, larger values
  ///     count as 2.
  ///   - oneWayDelayMilliseconds: mouth to ear.
  public init(codec: CodecImpairment, lossFraction: Double, burstRatio: Double = 1, oneWayDelayMilliseconds: Double) {
    let loss = 100 * min(1, max(0, lossFraction.isFinite ? lossFraction : 1))
    let burst = min(2, max(1, burstRatio.isFinite ? burstRatio : 1))
    let equipment = codec.base + (95 - codec.base) * loss / (loss / burst + codec.lossRobustness)
    rating = min(100, max(0, 93.2 - Self.delayImpairment(oneWayDelayMilliseconds) - equipment))
  }

  /// Idd of §7.4 with sT = 1, mT = 100 ms, mouth to ear: nothing up to 100 ms. For an echo-free path it is all of Id.
  public static func delayImpairment(_ milliseconds: Double) -> Double {
    guard milliseconds.isFinite, milliseconds > 100 else { return 0 }
    let x = log2(milliseconds / 100)
    func sixth(_ value: Double) -> Double { pow(1 + pow(value, 6), 1.0 / 6) }
    return 25 * (sixth(x) - 3 * sixth(x / 3) + 2)
  }

  /// MOS-CQE, 1…4.5 (Annex B).
  public var mean: Double {
    guard rating > 0 else { return 1 }
    guard rating < 100 else { return 4.5 }
    return max(1, 1 + 0.035 * rating + rating * (rating - 60) * (100 - rating) * 7e-6)
  }
}
