import Bytes
import CLinux
import MediaSession
import Platform
import STUN

/// What the next packets need is prefetched while one is worked on: with hundreds of calls none of it is in a near cache, and a packet
/// would wait a dozen times for memory, a tenth of a microsecond each.
extension MediaWorker {
  /// The session of an event on a trunk's socket, and its table of addresses. HOT
  @inline(__always) func prefetchSession(_ data: UInt64) {
    guard data >> 56 == Kind.trunk.rawValue else { return }
    prefetchEntry(Int(data & 0x00ff_ffff_ffff_ffff))
  }

  /// The rest, when the session is near. HOT
  @inline(__always) func prefetchTargets(_ data: UInt64) {
    guard data >> 56 == Kind.trunk.rawValue else { return }
    prefetchTargets(slot: Int(data & 0x00ff_ffff_ffff_ffff))
  }

  @inline(__always) func prefetchEntry(_ slot: Int) {
    guard slot < Limits.sessionsPerThread, let entry = entries[slot] else { return }
    clx_prefetch(entry, Limits.sessionLines)
  }

  @inline(__always) func prefetchTargets(slot: Int) {
    guard slot < Limits.sessionsPerThread, let entry = entries[slot] else { return }
    let targets = entry.pointee.prefetch
    clx_prefetch(UnsafeRawPointer(bitPattern: targets.leg), Limits.legLines)
    clx_prefetch(UnsafeRawPointer(bitPattern: targets.keys.sources), 1)
    clx_prefetch(UnsafeRawPointer(bitPattern: targets.keys.cipher), Limits.cipherLines)
    clx_prefetch(UnsafeRawPointer(bitPattern: targets.otherKeys.sources), 1)
    clx_prefetch(UnsafeRawPointer(bitPattern: targets.otherKeys.cipher), Limits.cipherLines)
    clx_prefetch(UnsafeRawPointer(bitPattern: targets.downlink), 1)
    clx_prefetch(UnsafeRawPointer(bitPattern: targets.uplink), 2)
  }

  /// For the app's datagrams `Limits.prefetchDistance` behind `index`: their rows of the address table, nearer ones' sessions, and all of
  /// the next one's. HOT
  @inline(__always) func prefetchApp(_ index: Int, _ route: Int32) {
    if let source = source(index &+ 2 &* Limits.prefetchDistance) { clx_prefetch(addresses.place(of: source, route), 1) }
    if let place = placeKnown(index &+ Limits.prefetchDistance, route) { prefetchEntry(Int(place.session)) }
    if let place = placeKnown(index &+ 1, route) { prefetchTargets(slot: Int(place.session)) }
  }

  @inline(__always) private func placeKnown(_ index: Int, _ route: Int32) -> AddressTable.Place? {
    source(index).flatMap { addresses.find($0, route) }
  }

  @inline(__always) private func source(_ index: Int) -> SocketAddress? {
    index < receiving.count ? receiving.source(index) : nil
  }
}
