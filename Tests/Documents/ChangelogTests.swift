import Foundation
import Testing

/// CHANGELOG.md has a section for each package that changed in a release: `Scripts/changelog` prints one package's part.
@Suite struct ChangelogTests {
  private struct Release {
    var title: String
    /// Headings of its sections with the number of entries, in order.
    var sections: [(package: String, entries: Int)] = []
  }

  private static let lines: [String] = {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let text = (try? String(contentsOf: root.appendingPathComponent("CHANGELOG.md"), encoding: .utf8)) ?? ""
    return text.components(separatedBy: "\n")
  }()

  /// The first column of the table before the first release.
  private static var packages: [String] {
    let rows = lines.prefix { !$0.hasPrefix("## ") }.filter { $0.hasPrefix("|") }.dropFirst(2)
    return rows.map { $0.split(separator: "|")[0].trimmingCharacters(in: .whitespaces) }
  }

  @Test func `each entry is in a section of a package that the table names, in the table's order`() {
    var releases: [Release] = []
    for (number, line) in Self.lines.enumerated() {
      if line.hasPrefix("## ") {
        releases.append(Release(title: String(line.dropFirst(3))))
      } else if line.hasPrefix("### "), !releases.isEmpty {
        releases[releases.count - 1].sections.append((String(line.dropFirst(4)), 0))
      } else if line.hasPrefix("- "), !releases.isEmpty {
        guard let last = releases[releases.count - 1].sections.indices.last else {
          Issue.record("CHANGELOG.md:\(number + 1): an entry without a package: put it below one of \(Self.packages)")
          continue
        }
        releases[releases.count - 1].sections[last].entries += 1
      }
    }
    #expect(!releases.isEmpty && Self.packages.contains("Web client"))
    for release in releases {
      let named = release.sections.map(\.package)
      #expect(
        named == Self.packages.filter(named.contains), "\(release.title): sections \(named), the table has \(Self.packages)")
      for section in release.sections {
        #expect(section.entries > 0, "\(release.title): \(section.package) has no entry: remove its heading")
      }
    }
  }
}
