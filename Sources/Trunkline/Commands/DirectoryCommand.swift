import ArgumentParser
import CommandSupport
import Configuration
import Foundation
import Platform
import Store

/// `trunkline directory`: who calls, and who may not.
struct DirectoryCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "directory", abstract: "Imports names and blocked numbers for apps.",
    discussion: """
      A directory is a user's (user:alice) or that of everybody who is logged in to an account (account:work). Apps show its names for
      calls, and callers that it blocks ring nobody. It is kept beside the store (store.sqlite with .directory behind it); a running gateway
      and its apps hear of a change at once.

      EXAMPLES:
        printf 'number,label,kind\\n+15550000001,Ann Example,identify\\n+15550000002,,block\\n' > contacts.csv
        trunkline directory import contacts.csv --scope user:alice --config gateway.yaml
        trunkline directory list --config gateway.yaml
        trunkline directory export --scope user:alice --config gateway.yaml > contacts.csv
      """,
    subcommands: [Import.self, Export.self, List.self])

  struct ScopeOption: ParsableArguments {
    @Option(help: ArgumentHelp("Whose directory it is.", valueName: "user:ID or account:NAME")) var scope: String

    func validate() throws {
      guard DirectoryPages.isScope(scope) else { throw ValidationError("a directory is user:ID or account:NAME") }
    }
  }

  struct Import: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Replaces a directory by a CSV file, or changes in it what the file names.",
      discussion: """
        At most \(Store.Limits.contacts) contacts. Every line is checked before anything changes; the first wrong one is named, and the
        command exits with 2. The order of the lines does not matter; a number stands once.

        EXAMPLES:
          trunkline directory import contacts.csv --scope account:work --config gateway.yaml
          printf 'number,label,kind\\n+15550000002,,remove\\n' | trunkline directory import /dev/stdin --changes --scope user:alice
        """)
    @Argument(help: ArgumentHelp("CSV with the head line number,label,kind.", valueName: "file")) var file: String
    @Flag(help: "Changes what the file names and leaves the rest; kind may be remove.") var changes = false
    @OptionGroup var directory: ScopeOption
    @OptionGroup var source: SettingsSource

    func run() throws {
      let settings = try source.load()
      let list = try read()
      do {
        let change = try DirectoryFile(path: settings.directory).take(
          list, into: directory.scope, replaces: !changes, now: WallClock.nowMilliseconds())
        Console.line(
          "\(change.entries) contacts in \(directory.scope): \(change.added) new, \(change.changed) changed, \(change.removed) removed; version \(change.version)"
        )
      } catch {
        complain("\(error)\nnothing was changed")
        throw ExitCode(1)
      }
    }

    private func read() throws -> ContactList {
      guard let handle = FileHandle(forReadingAtPath: file) else {
        complain("cannot read \(file): \(String(cString: strerror(errno)))")
        throw ExitCode(2)
      }
      do {
        var reader = ContactReader(.csv, takesRemovals: changes)
        while let data = try handle.read(upToCount: 1 << 20), !data.isEmpty { try reader.take(data) }
        return try reader.finish()
      } catch {
        complain("\(file): \(error)\nnothing was changed")
        throw ExitCode(2)
      }
    }
  }

  struct Export: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Prints a directory as CSV, as import takes it.")
    @OptionGroup var directory: ScopeOption
    @OptionGroup var source: SettingsSource

    func run() throws {
      let file = try DirectoryCommand.open(try source.load())
      var text = ContactReader.head + "\n"
      try file.forEach(in: directory.scope) { contact in
        let kind = contact.isBlocked ? "block" : "identify"
        text += "+\(contact.number),\(CSVLine.quoted(contact.label ?? "")),\(kind)\n"
        guard text.utf8.count > 1 << 16 else { return }
        Console.data(text)
        text = ""
      }
      Console.data(text)
    }
  }

  struct List: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Prints which directories there are.")
    @OptionGroup var source: SettingsSource

    func run() throws {
      for row in try DirectoryCommand.open(try source.load()).directories() {
        Console.line("\(row.name)  \(row.entries) contacts  version \(row.version)")
      }
    }
  }

  static func open(_ settings: Settings) throws -> DirectoryFile {
    do {
      return try DirectoryFile(path: settings.directory)
    } catch {
      complain("\(error)")
      throw ExitCode(1)
    }
  }
}
