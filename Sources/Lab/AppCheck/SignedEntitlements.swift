import Foundation

/// The entitlements of a built bundle: in the executable's code signature, else in the provisioning profile beside it.
enum SignedEntitlements {
  /// Of the XML blob in a signature (`CSMAGIC_EMBEDDED_ENTITLEMENTS`, Security's cs_blobs.h); its length follows, big-endian.
  private static let magic = Data([0xFA, 0xDE, 0x71, 0x71])

  /// Nil: there are none, as in a build for the simulator, or an unsigned one.
  static func data(executable: URL, bundle: URL) -> Data? {
    if let file = try? Data(contentsOf: executable, options: .alwaysMapped), let found = signed(file) { return found }
    let profile = bundle.appendingPathComponent("embedded.mobileprovision")
    return (try? Data(contentsOf: profile)).flatMap { provisioned($0) }
  }

  /// The last one that holds XML: code may hold the four bytes, too.
  private static func signed(_ file: Data) -> Data? {
    var end = file.endIndex
    while let at = file.range(of: magic, options: .backwards, in: file.startIndex..<end) {
      let length = file[at.upperBound...].prefix(4).reduce(0) { $0 << 8 | Int($1) }
      let text = file[at.upperBound...].dropFirst(4).prefix(max(0, length - 8))
      if length > 8, text.count == length - 8, text.starts(with: Data("<?xml".utf8)) || text.starts(with: Data("<!DOCTYPE".utf8))
      {
        return Data(text)
      }
      end = at.lowerBound
    }
    return nil
  }

  /// The profile is a signed message that holds a property list as it is.
  private static func provisioned(_ file: Data) -> Data? {
    guard let start = file.range(of: Data("<?xml".utf8)),
      let end = file.range(of: Data("</plist>".utf8), in: start.lowerBound..<file.endIndex),
      let root = try? PropertyListSerialization.propertyList(from: file[start.lowerBound..<end.upperBound], format: nil),
      let values = (root as? [String: Any])?["Entitlements"] as? [String: Any]
    else { return nil }
    return try? PropertyListSerialization.data(fromPropertyList: values, format: .xml, options: 0)
  }
}
