import AppSessions
import CallModel
import TrunklineAppProtocol
import TrunklineMediaSession
import TrunklineSDP

/// The legs of a call's devices, and the lock: which device has the call.
///
/// | state | input | → | returns |
/// |---|---|---|---|
/// | open | `add` | open | the leg's index; nil: the device has one, or the call has as many as it may |
/// | open | `lock` | locked | the other legs, which are removed |
/// | locked | `lock` | locked | no leg; the winner stays |
/// | any | `remove`: the device has left | same | – |
/// | any | `removeAll`: diverted | open, without legs | the legs |
struct DeviceLegs: RandomAccessCollection {
  private var legs: [DeviceLeg] = []
  private var nextLeg: UInt32 = 1
  /// The device that has the call.
  private(set) var winner: DeviceKey?

  var startIndex: Int { 0 }
  var endIndex: Int { legs.count }
  subscript(index: Int) -> DeviceLeg {
    _read { yield legs[index] }
    _modify { yield &legs[index] }
  }

  func index(of key: DeviceKey) -> Int? { legs.firstIndex { $0.key == key } }
  func index(of leg: AppLegID) -> Int? { legs.firstIndex { $0.id == leg } }
  var winnerIndex: Int? { winner.flatMap { index(of: $0) } }

  /// - Parameter offers: our description goes first.
  mutating func add(_ device: DevicePresence, _ negotiation: AppNegotiation, offers: Bool) -> Int? {
    guard legs.count < Limits.devicesPerCall, index(of: device.key) == nil else { return nil }
    var leg = DeviceLeg(
      key: device.key, id: AppLegID(raw: nextLeg), session: device.session, isConnected: device.isConnected,
      announcesActive: device.announcesActive, negotiation: negotiation)
    nextLeg += 1
    if offers { leg.makeOffer() }
    legs.append(leg)
    return legs.count - 1
  }

  /// The first device that can have the call gets it.
  mutating func lock(_ index: Int) -> [DeviceLeg] {
    guard winner == nil else { return [] }
    legs[index].wins()
    winner = legs[index].key
    let others = legs.filter { $0.key != winner }
    legs = [legs[index]]
    return others
  }

  mutating func remove(at index: Int) { legs.remove(at: index) }

  mutating func removeAll() -> [DeviceLeg] {
    defer { (legs, winner) = ([], nil) }
    return legs
  }
}
