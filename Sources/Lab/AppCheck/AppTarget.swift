import Foundation

/// An app or one of its extensions: its Info.plist, its entitlements, and what it is made of.
struct AppTarget {
  enum Kind: String, Sendable {
    case app = "the app"
    case callDirectory = "com.apple.callkit.call-directory"
    case intents = "com.apple.intents-service"
    case notificationService = "com.apple.usernotifications.service"
    /// An extension that has nothing to do with calls.
    case other
  }

  let info: PropertyList
  /// Empty: none were found.
  let entitlements: [PropertyList]
  /// Where its sources are, or its executable.
  let folder: URL
  let executable: URL?
  let kind: Kind
  /// What is wrong with the extension point itself.
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

  /// A point of calls that is misspelt; others are none of our business.
  private static func near(_ point: String) -> String? {
    let word = point.lowercased()
    guard word.contains("callkit") || word.contains("call-directory") || word.contains("calldirectory") else { return nil }
    return "NSExtensionPointIdentifier is \(point), which is not an extension point: \(Kind.callDirectory.rawValue) is meant"
  }

  /// Whether its sources or its executable name this; sources of packages beside it are not looked into.
  func mentions(_ word: String) -> Bool {
    let wanted = Data(word.utf8)
    if let executable { return (try? Data(contentsOf: executable, options: .alwaysMapped))?.range(of: wanted) != nil }
    return AppFiles.files(below: folder) { $0.pathExtension == "swift" || $0.pathExtension == "m" }.contains {
      (try? Data(contentsOf: $0))?.range(of: wanted) != nil
    }
  }

  /// Entitlements that hold an array of strings under this key.
  func groups(_ key: String) -> Set<String> {
    Set(
      entitlements.flatMap { list -> [String] in
        if case .there(let values) = list.strings(key) { values } else { [] }
      })
  }
}
