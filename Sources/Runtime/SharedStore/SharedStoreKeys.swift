import CallModel
import Cluster
import TrunklineBytes
import TrunklineSIPDialogs

/// Names of keys and channels. The text between `{` and `}` chooses the slot of a Redis Cluster, so names in it are escaped.
struct SharedStoreKeys: Sendable {
  let prefix: String
  /// Signs the values under these names; nil: values are not signed.
  let seal: SharedStoreSeal?
  init(prefix: String, seal: SharedStoreSeal? = nil) { (self.prefix, self.seal) = (Self.escaped(prefix, also: ":"), seal) }

  static let nodes = "nodes"
  static let records = "records"
  static let directories = "dirs"
  static let grants = "grants"
  static func user(_ user: String) -> String { "u:" + escaped(user) }
  static func call(_ call: String) -> String { "c:" + call }
  static func incarnation(_ incarnation: Incarnation) -> String { "i:" + escaped(incarnation.description) }
  static func trunk(_ trunk: String) -> String { "t:" + escaped(trunk) }
  static func task(_ task: SingleTask) -> String { "l:" + escaped(task.description) }

  /// `tl:{u:alice}:where`
  func key(_ tag: String, _ rest: String = "") -> String { rest.isEmpty ? "\(prefix):{\(tag)}" : "\(prefix):{\(tag)}:\(rest)" }

  func ofUser(_ user: String, _ rest: String) -> String { key(Self.user(user), rest) }
  func calls(of incarnation: Incarnation) -> String { key(Self.incarnation(incarnation), "calls") }
  func over(_ call: CallID) -> String { key(Self.call(call.description), "over") }
  func lease(of incarnation: Incarnation) -> String { key(Self.nodes, "lease:" + Self.escaped(incarnation.node)) }
  var grantRows: String { key(Self.grants, "rows") }
  var directoryHeads: String { key(Self.directories, "heads") }
  func directoryPart(_ name: String) -> String { key(Self.directories, "part:" + name) }

  func channel(to node: String) -> String { "\(prefix):to:\(Self.escaped(node))" }
  var everybody: String { "\(prefix):all" }
  /// No node subscribes to it; the greeting tests with it whether we may write to channels.
  var trial: String { "\(prefix):trial" }

  /// Letters, digits and `-_.@+` stay; every other byte becomes `%` and two digits. An escaped name of more than 128 bytes keeps
  /// its first 96 and ends in a hash of the whole.
  static func escaped(_ text: String, also: StaticString = "") -> String {
    let others = Set("-_.@+".utf8).union(also.withUTF8Buffer { Array($0) })
    var out: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case 48...57, 65...90, 97...122: out.append(byte)
      case _ where others.contains(byte): out.append(byte)
      default: out += [37, hex(byte >> 4), hex(byte & 15)]
      }
    }
    guard out.count > 128 else { return String(decoding: out, as: UTF8.self) }
    // FNV-1a of 64 bits, twice: a client that finds two such names only makes these users share their hints
    var hash = FNV1a(out)
    let first = hash.value
    hash.add(out.reversed())
    return String(decoding: out.prefix(96), as: UTF8.self) + "%%" + String(first, radix: 16) + String(hash.value, radix: 16)
  }

  private static func hex(_ digit: UInt8) -> UInt8 { digit < 10 ? 48 + digit : 55 + digit }

  /// The slot of a Redis Cluster: CRC-16 (XMODEM) of the tag, of 16,384.
  static func slot(_ tag: String) -> Int {
    var crc: UInt16 = 0
    for byte in tag.utf8 {
      crc ^= UInt16(byte) << 8
      for _ in 0..<8 { crc = crc & 0x8000 != 0 ? crc << 1 ^ 0x1021 : crc << 1 }
    }
    return Int(crc) % slots
  }
  static let slots = 16_384
}
