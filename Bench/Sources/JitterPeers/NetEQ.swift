import CNetEQ
import TrunklineBytes

/// WebRTC's NetEQ, as Debian's libtgowt-dev carries it, with its own decoders.
public struct NetEQ: ~Copyable {
  public enum Codec: Sendable { case pcmu, g722, opus }

  private let sharedStore: OpaquePointer
  private let payloadType: Int32
  /// 8000 for PCMU, 16000 for G.722, 48000 for Opus.
  public let sampleRateHz: Int
  /// Samples of one pull: 10 ms.
  public var samplesPerPull: Int { sampleRateHz / 100 }

  public static var isInstalled: Bool { neteq_available() == 1 }

  /// nil where NetEQ is not installed.
  public init?(_ codec: Codec, minimumDelayMilliseconds: Int = 0) {
    switch codec {
    case .pcmu: (payloadType, sampleRateHz) = (0, 8_000)
    case .g722: (payloadType, sampleRateHz) = (9, 16_000)
    case .opus: (payloadType, sampleRateHz) = (111, 48_000)
    }
    guard let sharedStore = neteq_make(Int32(sampleRateHz), Int32(minimumDelayMilliseconds)) else { return nil }
    self.sharedStore = sharedStore
  }
  deinit { neteq_free(sharedStore) }

  /// False if NetEQ refused the packet.
  @discardableResult public func insert(sequence: UInt16, timestamp: UInt32, payload: [UInt8], at now: Instant) -> Bool {
    payload.withUnsafeBufferPointer {
      neteq_insert(sharedStore, payloadType, sequence, timestamp, $0.baseAddress, $0.count, now.nanoseconds / 1000) == 0
    }
  }

  /// The next 10 ms; how many samples were written.
  public func pull(into samples: UnsafeMutableBufferPointer<Int16>, at now: Instant) -> Int {
    Int(neteq_pull(sharedStore, samples.baseAddress, Int32(samples.count), now.nanoseconds / 1000))
  }

  /// In samples at the output rate, except `fec_packets`.
  public var totals: neteq_totals { neteq_statistics(sharedStore) }

  /// Of the last sample pulled.
  public var playoutTimestamp: UInt32? {
    var timestamp: UInt32 = 0
    return neteq_playout_timestamp(sharedStore, &timestamp) == 1 ? timestamp : nil
  }
}
