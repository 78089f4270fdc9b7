/// Which packet indices of one SSRC were received: the highest, and a bit for each of the 128 up to it. Used for SRTP (48-bit
/// index, of which the packet carries 16 bits) and SRTCP (31 bits, carried whole).
struct IndexWindow {
  private(set) var highest: UInt64 = 0
  private var recent: UInt64 = 0  // bit k: highest - k
  private var older: UInt64 = 0  // bit k: highest - 64 - k
  private(set) var isEmpty = true

  init() {}
  /// The window of a source whose indices below `next` all count as received; 0: none does.
  init(next: UInt64) {
    guard next > 0 else { return }
    (highest, recent, older, isEmpty) = (next - 1, .max, .max, false)
  }

  /// The index of a 16-bit sequence number (RFC 3711 §3.3.1 and appendix A); nil if it lies before the first roll-over count.
  @inline(__always) func estimate(_ sequence: UInt16) -> UInt64? {
    if isEmpty { return UInt64(sequence) }
    let low = UInt16(truncatingIfNeeded: highest)
    var delta = Int64(Int16(bitPattern: sequence &- low))
    if delta == -32_768, low < 0x8000 { delta = 32_768 }
    let index = Int64(bitPattern: highest) &+ delta
    return index < 0 ? nil : UInt64(bitPattern: index)
  }

  /// nil if the index is new; called before the tag is checked, changes nothing.
  @inline(__always) func refusal(_ index: UInt64) -> SRTPError? {
    if isEmpty || index > highest { return nil }
    let behind = highest &- index
    guard behind < Limits.replayWindow else { return .tooOld }
    let seen = behind < 64 ? recent >> behind & 1 : older >> (behind &- 64) & 1
    return seen == 1 ? .replayed : nil
  }

  /// Marks an index as received; only for a packet whose tag was verified.
  @inline(__always) mutating func record(_ index: UInt64) {
    if isEmpty {
      highest = index
      recent = 1
      older = 0
      isEmpty = false
    } else if index > highest {
      let ahead = index &- highest
      // Swift's smart shifts give zero for 64 and more.
      older = ahead < 64 ? older << ahead | recent >> (64 &- ahead) : recent << (ahead &- 64)
      if ahead >= Limits.replayWindow { older = 0 }
      recent = recent << ahead | 1
      highest = index
    } else {
      let behind = highest &- index
      if behind < 64 { recent |= 1 << behind } else { older |= 1 << (behind &- 64) }
    }
  }
}
