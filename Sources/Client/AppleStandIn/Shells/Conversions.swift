import Foundation
import TrunklineBytes

/// Between Apple's values and the machine's.
extension UUID {
  init(_ id: Identifier) {
    let (h, l) = (id.high, id.low)
    func byte(_ word: UInt64, at index: UInt64) -> UInt8 { UInt8(truncatingIfNeeded: word >> (56 - 8 * index)) }
    self.init(
      uuid: (
        byte(h, at: 0), byte(h, at: 1), byte(h, at: 2), byte(h, at: 3), byte(h, at: 4), byte(h, at: 5), byte(h, at: 6),
        byte(h, at: 7), byte(l, at: 0), byte(l, at: 1),
        byte(l, at: 2), byte(l, at: 3), byte(l, at: 4), byte(l, at: 5), byte(l, at: 6), byte(l, at: 7)
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
