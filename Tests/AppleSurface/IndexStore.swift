import CIndexStore
import Foundation

/// References that the compiler has noted, by file: `swiftc -index-store-path`. Each has the name that the linker would know (a USR), so that `span` of
/// Array and of ContiguousArray are two.
struct IndexStore {
  struct Reference: Hashable {
    var file: String
    var line: Int
    var usr: String
  }

  /// What the C side calls back with.
  private final class Walk {
    let wantsFile: (String) -> Bool
    let wantsSymbol: (String) -> Bool
    var file = ""
    var files: Set<String> = []
    var references: Set<Reference> = []
    /// Of symbols that were asked for before: each is in thousands of lines.
    var known: [String: Bool] = [:]
    init(_ wantsFile: @escaping (String) -> Bool, _ wantsSymbol: @escaping (String) -> Bool) {
      (self.wantsFile, self.wantsSymbol) = (wantsFile, wantsSymbol)
    }
  }

  let path: String

  /// - Returns: files of the index among the wanted ones, and their references to wanted symbols.
  func references(
    in wantsFile: @escaping (String) -> Bool, to wantsSymbol: @escaping (String) -> Bool
  ) throws -> (files: Set<String>, references: Set<Reference>) {
    let walk = Walk(wantsFile, wantsSymbol)
    let reader = index_reader(
      context: Unmanaged.passUnretained(walk).toOpaque(),
      wants_file: { context, data, length in
        guard let walk = IndexStore.walk(context) else { return 0 }
        walk.file = IndexStore.text(data, length)
        guard walk.wantsFile(walk.file) else { return 0 }
        walk.files.insert(walk.file)
        return 1
      },
      wants_symbol: { context, data, length in
        guard let walk = IndexStore.walk(context) else { return 0 }
        let usr = IndexStore.text(data, length)
        if let known = walk.known[usr] { return known ? 1 : 0 }
        let isWanted = walk.wantsSymbol(usr)
        walk.known[usr] = isWanted
        return isWanted ? 1 : 0
      },
      found: { context, data, length, line in
        guard let walk = IndexStore.walk(context) else { return }
        walk.references.insert(Reference(file: walk.file, line: Int(line), usr: IndexStore.text(data, length)))
      })
    let problem = withExtendedLifetime(walk) { index_read(Self.library, path, reader) }
    if let problem { throw SurfaceBuild.Failure(description: "\(path): \(String(cString: problem))") }
    return (walk.files, walk.references)
  }

  private static func walk(_ context: UnsafeMutableRawPointer?) -> Walk? {
    context.map { Unmanaged<Walk>.fromOpaque($0).takeUnretainedValue() }
  }
  private static func text(_ data: UnsafePointer<CChar>?, _ length: Int) -> String {
    String(decoding: UnsafeRawBufferPointer(start: data, count: length), as: UTF8.self)
  }

  /// Of the toolchain that is on PATH.
  private static let library: String = {
    struct Info: Decodable {
      struct Paths: Decodable { var runtimeResourcePath: String }
      var paths: Paths
    }
    let text = (try? SurfaceBuild.run("swiftc", ["-print-target-info"]))?.text ?? ""
    let info = try? JSONDecoder().decode(Info.self, from: Data(text.utf8))
    return (info?.paths.runtimeResourcePath ?? "") + "/../libIndexStore.so"
  }()
}
