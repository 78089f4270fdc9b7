/// Code in Markdown and in documentation comments.
enum CodeBlocks {
  /// What stands behind `///`, line by line; an empty line for all others, so that numbers are those of the file.
  static func docstrings(_ lines: [String]) -> [String] {
    lines.map { line in
      let text = line.drop { $0 == " " }
      guard text.hasPrefix("///") else { return "" }
      let comment = text.dropFirst(3)
      return String(comment.hasPrefix(" ") ? comment.dropFirst() : comment)
    }
  }

  /// The blocks behind a fence that says `swift`, without the indentation of the fence, and the number of their first line.
  static func swift(_ lines: [String]) -> [(line: Int, lines: [String])] {
    var found: [(line: Int, lines: [String])] = []
    var open: (isSwift: Bool, indentation: Int)?
    for (number, line) in lines.enumerated() {
      let text = line.drop { $0 == " " }
      if text.hasPrefix("```") {
        let isSwift = text.dropFirst(3).hasPrefix("swift")
        open = open == nil ? (isSwift, line.count - text.count) : nil
        if open?.isSwift == true { found.append((number + 2, [])) }
      } else if let open, open.isSwift {
        found[found.count - 1].lines.append(String(line.dropFirst(min(open.indentation, line.count - text.count))))
      }
    }
    return found
  }

  /// Lines that Markdown takes for code because of four blanks behind an empty line, not in a list or a fence.
  static func indented(_ lines: [String]) -> [Int] {
    var (isFenced, isList) = (false, false)
    return lines.indices.filter { number in
      let (line, text) = (lines[number], lines[number].drop { $0 == " " })
      if text.hasPrefix("```") { isFenced.toggle() }
      if !text.isEmpty, line.first != " " { isList = text.hasPrefix("- ") || text.first?.isNumber == true }
      let isAfterEmpty = number > 0 && lines[number - 1].allSatisfy { $0 == " " }
      return !isFenced && !isList && isAfterEmpty && line.hasPrefix("    ") && !text.isEmpty
    }
  }

  /// Whether the lines stand in the file one after the other, all of them indented by the same number of blanks.
  static func stands(_ block: [String], in file: [String]) -> Bool {
    guard let first = block.first, !first.isEmpty, file.count >= block.count else { return false }
    return file.indices.dropLast(block.count - 1).contains { start in
      let indentation = file[start].count - first.count
      guard indentation >= 0 else { return false }
      let blanks = String(repeating: " ", count: indentation)
      return block.indices.allSatisfy { index in
        let (mine, theirs) = (block[index], file[start + index])
        return mine.isEmpty ? theirs.isEmpty : theirs == blanks + mine
      }
    }
  }
}
