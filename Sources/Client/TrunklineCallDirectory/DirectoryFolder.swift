import Foundation

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// The folder that app and extension share: in the app group's container, with three files per extension.
///
/// | file | written by | content |
/// |---|---|---|
/// | `ID.current` | the app, by rename | the directory that the extension is to load |
/// | `ID.loading` | the extension | a hard link to the file that is being loaded: the app may replace `current` meanwhile |
/// | `ID.loaded` | the extension | the directory that iOS has loaded: the base of the next difference. Missing: iOS's state is unknown |
public struct DirectoryFolder: Sendable, Hashable {
  /// Path of the folder.
  public let path: String

  /// A folder of the caller's choice: for tests, and for apps with a different container. Made at the first write.
  public init(path: String) { self.path = path }

  /// - Throws: `DirectoryError.noAppGroup` if this process has no such container; on Linux always.
  public init(appGroup: String) throws(DirectoryError) {
    #if canImport(Darwin)
      guard let container = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: appGroup)
      else { throw .noAppGroup(appGroup) }
      path = container.appendingPathComponent("TrunklineDirectory").path
    #else
      throw .noAppGroup(appGroup)
    #endif
  }

  func current(_ identifier: String) -> String { "\(path)/\(identifier).current" }
  func loading(_ identifier: String) -> String { "\(path)/\(identifier).loading" }
  func loaded(_ identifier: String) -> String { "\(path)/\(identifier).loaded" }
  func writing(_ identifier: String) -> String { "\(path)/\(identifier).writing" }

  /// Checks that the identifier has only letters, digits, hyphens, points and underscores.
  static func check(_ identifier: String) throws(DirectoryError) {
    let isName = identifier.utf8.allSatisfy { byte in
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
      default: false
      }
    }
    guard isName, !identifier.isEmpty, !identifier.hasPrefix("."), identifier.utf8.count <= 200
    else { throw .configuration("\"\(identifier)\" is not a bundle identifier") }
  }

  func make() throws(DirectoryError) {
    guard mkdir(path, 0o755) == 0 || errno == EEXIST
    else { throw .system(call: "mkdir", path: DirectoryFile.name(path), errno: errno) }
  }

  // MARK: a load

  /// Links the current file under the name `loading`, so that exactly this file becomes `loaded`.
  func beginLoading(_ identifier: String) throws(DirectoryError) {
    unlink(loading(identifier))
    guard link(current(identifier), loading(identifier)) == 0 else {
      throw errno == ENOENT
        ? .missing("\(identifier).current") : .system(call: "link", path: "\(identifier).loading", errno: errno)
    }
  }
  /// From here until `recordLoaded`, iOS's state is unknown.
  func forgetLoaded(_ identifier: String) { unlink(loaded(identifier)) }
  func endLoading(_ identifier: String) { unlink(loading(identifier)) }
  /// Call it after `forgetLoaded`: a rename onto another link of the same file would leave both names.
  func recordLoaded(_ identifier: String) throws(DirectoryError) {
    try Self.rename(loading(identifier), to: loaded(identifier))
  }

  static func rename(_ old: String, to new: String) throws(DirectoryError) {
    #if canImport(Darwin)
      let result = Darwin.rename(old, new)
    #else
      let result = Glibc.rename(old, new)
    #endif
    guard result == 0 else { throw .system(call: "rename", path: DirectoryFile.name(new), errno: errno) }
  }
}
