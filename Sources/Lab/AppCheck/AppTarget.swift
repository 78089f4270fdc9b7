import Foundation

/// An app or one of its extensions: its Info.plist, its entitlements, and its sources or executable.
struct AppTarget {
  enum Kind: String, Sendable {
    case app = "the app"
    case callDirectory = "com.apple.callkit.call-directory"
    case intents = "com.apple.intents-service"
    case notificationService = "com.apple.usernotifications.service"
    /// An extension without relation to calls.
    case other
  }

  let info: PropertyList
  /// Empty: none were found.
  let entitlements: [PropertyList]
  /// The folder of its sources, or of its executable.
  let folder: URL
  let executable: URL?
  let kind: Kind
  /// A fault of the extension point itself.
  let pointProblem: String?

  init(info: PropertyList, entitlements: [PropertyList], folder: URL, executable: URL?) {
    (self.info, self.entitlements, self.folder, self.executable) = (info, entitlements, folder, executable)
    (kind, pointProblem) = Self.kind(of: info)
  }

  private static func kind(of info: PropertyList) -> (Kind, String?) {
    switch info.dictionary("NSExtension") {
    case .missing: return (.app, nil)
    case .wrong(let text): return (.other, text)
    case .there(let values):
      guard let value = values["NSExtensionPointIdentifier"] else {
        return (.other, "NSExtension has no NSExtensionPointIdentifier: iOS cannot tell the kind of the extension")
      }
      guard let point = value as? String else {
        return (.other, "NSExtensionPointIdentifier is \(PropertyList.kind(value)), and must be a string")
      }
      if let kind = Kind(rawValue: point), kind != .app, kind != .other { return (kind, nil) }
      return (.other, near(point))
    }
  }

  /// The problem of a misspelt extension point for calls; nil for other points.
  private static func near(_ point: String) -> String? {
    let word = point.lowercased()
    guard word.contains("callkit") || word.contains("call-directory") || word.contains("calldirectory") else { return nil }
    return "NSExtensionPointIdentifier is \(point), which is not an extension point: \(Kind.callDirectory.rawValue) is meant"
  }

  /// Whether its sources or its executable name this; sources of packages beside it are not searched.
  func mentions(_ word: String) -> Bool {
    let wanted = Data(word.utf8)
    if let executable { return (try? Data(contentsOf: executable, options: .alwaysMapped))?.range(of: wanted) != nil }
    return AppFiles.files(below: folder) { $0.pathExtension == "swift" || $0.pathExtension == "m" }.contains {
      (try? Data(contentsOf: $0))?.range(of: wanted) != nil
    }
  }

  /// The strings in this key's arrays in all entitlements.
  func groups(_ key: String) -> Set<String> {
    Set(
      entitlements.flatMap { list -> [String] in
        if case .there(let values) = list.strings(key) { values } else { [] }
      })
  }
}
