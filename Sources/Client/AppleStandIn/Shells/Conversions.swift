import Foundation
import TrunklineBytes

/// Between Apple's values and the machine's.
extension UUID {
  init(_ id: Identifier) {
    let (h, l) = (id.high, id.low)
    func byte(_ word: UInt64, _ index: UInt64) -> UInt8 { UInt8(truncatingIfNeeded: word >> (56 - 8 * index)) }
    self.init(
      uuid: (
        byte(h, 0), byte(h, 1), byte(h, 2), byte(h, 3), byte(h, 4), byte(h, 5), byte(h, 6), byte(h, 7), byte(l, 0), byte(l, 1),
        byte(l, 2), byte(l, 3), byte(l, 4), byte(l, 5), byte(l, 6), byte(l, 7)
      ))
  }
}

extension Identifier {
  init(_ id: UUID) {
    let bytes = withUnsafeBytes(of: id.uuid) { Array($0) }
    self.init(
      high: bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) }, low: bytes[8...].reduce(0) { $0 << 8 | UInt64($1) })
  }
}

extension SystemMachine.Caller {
  init(_ handle: CXHandle, name: String? = nil) {
    self.init(handle.value, name: name, kind: SystemMachine.HandleKind(rawValue: handle.type.rawValue) ?? .generic)
  }
  init(_ update: CXCallUpdate) {
    self.init("", name: update.localizedCallerName)
    if let handle = update.remoteHandle { self = Self(handle, name: update.localizedCallerName) }
  }
}

extension CXHandle {
  convenience init(_ caller: SystemMachine.Caller) {
    self.init(type: HandleType(rawValue: caller.kind.rawValue) ?? .generic, value: caller.handle)
  }
}
