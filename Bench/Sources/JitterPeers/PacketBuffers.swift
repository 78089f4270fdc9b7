import CJitterPeers

/// speexdsp's `JitterBuffer`: hands out packets on its own schedule, conceals nothing.
public struct SpeexJitterBuffer: ~Copyable {
  private let sharedStore: OpaquePointer
  private let samples: Int32
  /// G.711, a packet a tick. nil where speexdsp is not installed.
  public init?(frameMilliseconds: Int = 20, marginMilliseconds: Int = 0) {
    samples = Int32(frameMilliseconds * 8)
    guard let sharedStore = speex_peer_make(samples, Int32(marginMilliseconds * 8)) else { return nil }
    self.sharedStore = sharedStore
  }
  deinit { speex_peer_free(sharedStore) }

  public func put(sequence: UInt16, timestamp: UInt32, payload: UnsafeBufferPointer<UInt8>) {
    speex_peer_put(sharedStore, sequence, timestamp, payload.baseAddress, payload.count)
  }
  /// The next tick's packet and its timestamp; nil if there is none.
  public func get(into payload: UnsafeMutableBufferPointer<UInt8>) -> (timestamp: UInt32, length: Int)? {
    var timestamp: UInt32 = 0
    let length = speex_peer_get(sharedStore, samples, payload.baseAddress, payload.count, &timestamp)
    return length > 0 ? (timestamp, Int(length)) : nil
  }
}

/// libre's `jbuf` with baresip's bounds of 5 and 10 packets.
public struct LibreJitterBuffer: ~Copyable {
  private let sharedStore: OpaquePointer
  /// nil where libre is not installed.
  public init?(minimum: UInt32 = 5, maximum: UInt32 = 10) {
    guard let sharedStore = libre_peer_make(minimum, maximum) else { return nil }
    self.sharedStore = sharedStore
  }
  deinit { libre_peer_free(sharedStore) }

  public func put(sequence: UInt16, timestamp: UInt32, payload: UnsafeBufferPointer<UInt8>) {
    libre_peer_put(sharedStore, sequence, timestamp, payload.baseAddress, payload.count)
  }
  /// The next packet and its timestamp; nil if there is none.
  public func get(into payload: UnsafeMutableBufferPointer<UInt8>) -> (timestamp: UInt32, length: Int)? {
    var timestamp: UInt32 = 0
    let length = libre_peer_get(sharedStore, payload.baseAddress, payload.count, &timestamp)
    return length > 0 ? (timestamp, Int(length)) : nil
  }
}
