import Bytes
import CLinux
import MediaSession
import Platform
import STUN

/// What the next packets need is fetched while one is worked on: with hundreds of calls none of it is in a near cache, and a packet
/// would wait a dozen times for memory, a tenth of a microsecond each.
extension MediaWorker {
  /// The session of an event on a trunk's socket, and the table of far addresses in it. HOT
  @inline(__always) func fetchSession(_ data: UInt64) {
    guard data >> 56 == Kind.trunk.rawValue else { return }
    fetchEntry(Int(data & 0x00ff_ffff_ffff_ffff))
  }

  /// The rest, when the session is near. HOT
  @inline(__always) func fetchFar(_ data: UInt64) {
    guard data >> 56 == Kind.trunk.rawValue else { return }
    fetchFar(slot: Int(data & 0x00ff_ffff_ffff_ffff))
  }

  @inline(__always) func fetchEntry(_ slot: Int) {
    guard slot < Limits.sessionsPerThread, let entry = entries[slot] else { return }
    clx_fetch(entry, Limits.sessionLines)
  }

  @inline(__always) func fetchFar(slot: Int) {
    guard slot < Limits.sessionsPerThread, let entry = entries[slot] else { return }
    let far = entry.pointee.far
    clx_fetch(UnsafeRawPointer(bitPattern: far.leg), Limits.legLines)
    clx_fetch(UnsafeRawPointer(bitPattern: far.keys.sources), 1)
    clx_fetch(UnsafeRawPointer(bitPattern: far.keys.cipher), Limits.cipherLines)
    clx_fetch(UnsafeRawPointer(bitPattern: far.otherKeys.sources), 1)
    clx_fetch(UnsafeRawPointer(bitPattern: far.otherKeys.cipher), Limits.cipherLines)
    clx_fetch(UnsafeRawPointer(bitPattern: far.downlink), 1)
    clx_fetch(UnsafeRawPointer(bitPattern: far.uplink), 2)
  }

  /// For the app's datagrams `Limits.fetchAhead` behind `index`: their rows of the address table, nearer ones' sessions, and all of
  /// the next one's. HOT
  @inline(__always) func fetchApp(_ index: Int, _ route: Int32) {
    if let source = source(index &+ 2 &* Limits.fetchAhead) { clx_fetch(addresses.place(of: source, route), 1) }
    if let place = placeKnown(index &+ Limits.fetchAhead, route) { fetchEntry(Int(place.session)) }
    if let place = placeKnown(index &+ 1, route) { fetchFar(slot: Int(place.session)) }
  }

  @inline(__always) private func placeKnown(_ index: Int, _ route: Int32) -> AddressTable.Place? {
    source(index).flatMap { addresses.find($0, route) }
  }

  @inline(__always) private func source(_ index: Int) -> SocketAddress? {
    index < receiving.count ? receiving.source(index) : nil
  }
}
