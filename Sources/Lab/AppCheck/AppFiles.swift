import Foundation

/// Finds the targets of an app: in a folder of sources, each with its Info.plist and `.entitlements` in its own folder; or in a
/// bundle.
enum AppFiles {
  private static let limit = 20_000

  static func targets(at path: String) throws(AppCheck.Problem) -> [AppTarget] {
    let root = URL(fileURLWithPath: path)
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: root.path, isDirectory: &isFolder) else {
      throw AppCheck.Problem(in: path, "is not there: give the folder of the app's sources, or the .app that Xcode built")
    }
    guard isFolder.boolValue else {
      throw AppCheck.Problem(in: path, "is a file: give the folder of the app's sources, or the .app that Xcode built")
    }
    let targets = root.pathExtension == "app" ? try bundles(root) : try sources(root)
    guard targets.contains(where: { $0.kind == .app }) else {
      throw AppCheck.Problem(
        in: path,
        "holds no Info.plist of an app: where Xcode generates it, build the app and give the .app; else give the folder above it")
    }
    return targets
  }

  // MARK: sources

  private static func sources(_ root: URL) throws(AppCheck.Problem) -> [AppTarget] {
    let infos = files(below: root) { $0.lastPathComponent.hasSuffix("Info.plist") }
    let folders = Set(infos.map { $0.deletingLastPathComponent().path })
    var targets: [AppTarget] = []
    for info in infos {
      let folder = info.deletingLastPathComponent()
      let list = try Self.list(info, under: root)
      // a resource bundle has an Info.plist, too
      guard list.values["NSExtension"] != nil || list.values["CFBundlePackageType"] as? String != "BNDL" else { continue }
      let own = files(below: folder) { file in
        file.pathExtension == "entitlements" && nearest(file, folders) == folder.path
      }
      var entitlements: [PropertyList] = []
      for file in own where isOwn(file, of: info, among: infos) { entitlements.append(try Self.list(file, under: root)) }
      targets.append(AppTarget(info: list, entitlements: entitlements, folder: folder, executable: nil))
    }
    return targets
  }

  /// The nearest folder above the file that has an Info.plist.
  private static func nearest(_ file: URL, _ folders: Set<String>) -> String {
    var folder = file.deletingLastPathComponent()
    while !folders.contains(folder.path), folder.path.count > 1 { folder = folder.deletingLastPathComponent() }
    return folder.path
  }

  /// For several targets in one folder: `Share-Info.plist` belongs with `Share.entitlements`, `Info.plist` with those that match
  /// no other target's name.
  private static func isOwn(_ file: URL, of info: URL, among infos: [URL]) -> Bool {
    func stem(_ url: URL) -> String { String(url.lastPathComponent.dropLast("Info.plist".count)).lowercased() }
    func trimmed(_ text: String) -> String { String(text.prefix { $0 != "-" && $0 != "." }) }
    let siblings = infos.filter { $0.deletingLastPathComponent() == info.deletingLastPathComponent() }
    guard siblings.count > 1 else { return true }
    let name = trimmed(file.lastPathComponent.lowercased())
    let names = siblings.map { trimmed(stem($0)) }
    return trimmed(stem(info)) == name || (stem(info).isEmpty && !names.contains(name))
  }

  // MARK: bundles

  private static func bundles(_ root: URL) throws(AppCheck.Problem) -> [AppTarget] {
    var targets = [try bundle(root, under: root)]
    for folder in ["PlugIns", "Extensions"].map({ root.appendingPathComponent($0) }) {
      let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
      for name in names.sorted() where name.hasSuffix(".appex") {
        targets.append(try bundle(folder.appendingPathComponent(name), under: root))
      }
    }
    return targets
  }

  private static func bundle(_ folder: URL, under root: URL) throws(AppCheck.Problem) -> AppTarget {
    let info = try Self.list(folder.appendingPathComponent("Info.plist"), under: root)
    let name = info.values["CFBundleExecutable"] as? String ?? folder.deletingPathExtension().lastPathComponent
    let executable = folder.appendingPathComponent((name as NSString).lastPathComponent)
    let isThere = FileManager.default.fileExists(atPath: executable.path)
    var entitlements: [PropertyList] = []
    if let found = SignedEntitlements.data(executable: executable, bundle: folder) {
      entitlements.append(try PropertyList(found, name: relative(folder, to: root) + ": entitlements of its signature"))
    }
    return AppTarget(info: info, entitlements: entitlements, folder: folder, executable: isThere ? executable : nil)
  }

  // MARK: files

  private static func list(_ file: URL, under root: URL) throws(AppCheck.Problem) -> PropertyList {
    let name = relative(file, to: root)
    guard let data = try? Data(contentsOf: file) else {
      throw AppCheck.Problem(in: name, "cannot be read: look whether it is there and may be read")
    }
    return try PropertyList(data, name: name)
  }

  private static func relative(_ file: URL, to root: URL) -> String {
    let (path, above) = (file.standardizedFileURL.path, root.standardizedFileURL.path)
    return path.hasPrefix(above + "/") ? String(path.dropFirst(above.count + 1)) : file.lastPathComponent
  }

  /// The Swift sources of an app; none of a bundle.
  static func swiftFiles(at path: String) -> [(name: String, url: URL)] {
    let root = URL(fileURLWithPath: path)
    guard root.pathExtension != "app" else { return [] }
    return files(below: root) { $0.pathExtension == "swift" }.map { (relative($0, to: root), $0) }
  }

  /// Lists files in the order of their paths, without the products of builds and packages.
  static func files(below folder: URL, _ isWanted: (URL) -> Bool) -> [URL] {
    let skipped: Set<String> = ["Pods", "Carthage", "DerivedData", "node_modules", "build"]
    guard
      let found = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil, options: [.skipsHiddenFiles])
    else { return [] }
    var (files, count): ([URL], Int) = ([], 0)
    for case let file as URL in found {
      count += 1
      if count > limit { break }
      let name = file.lastPathComponent
      if skipped.contains(name) || ["xcodeproj", "framework", "xcframework", "app", "appex"].contains(file.pathExtension) {
        found.skipDescendants()
      } else if isWanted(file) {
        files.append(file)
      }
    }
    return files.sorted { $0.path < $1.path }
  }
}
