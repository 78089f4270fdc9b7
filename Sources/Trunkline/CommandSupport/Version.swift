import CTrunklineLinux

/// Of the gateway and of the lab: they are built together.
package enum Version {
  package static let number = "0.1.0"
  /// Of a packaged program; empty else.
  package static let commit = String(cString: clx_commit())
  package static let text = "trunkline \(number)" + (commit.isEmpty ? "" : " (\(commit))")
}
