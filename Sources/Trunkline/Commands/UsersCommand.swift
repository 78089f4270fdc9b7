import ArgumentParser
import CallFlow
import CallModel
import CommandSupport
import Configuration
import Foundation
import Store

/// `trunkline users`: the owners of numbers that are not in the configuration.
struct UsersCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "users", abstract: "Imports numbers of users, and shows the owner of a number.",
    discussion: """
      The configuration lists users with all their settings. For many numbers there is an import beside it: CSV with the head line
      number,user and a number and a user's id (sub of the login tokens) in each further line. An import replaces the one before it,
      as a whole: a wrong line changes nothing. Its file is that of store.sqlite with .numbers appended.

      A running gateway loads an import at SIGHUP (systemctl reload trunkline). Users that the configuration does not list may log
      in, and their numbers ring, with users: any.

      EXAMPLES:
        printf 'number,user\\n+15551230001,alice\\n' > numbers.csv
        trunkline users import numbers.csv --config gateway.yaml && systemctl reload trunkline
        trunkline users export --config gateway.yaml > numbers.csv
        trunkline users show +15551230001 --config gateway.yaml
        trunkline users show alice --config gateway.yaml
      """,
    subcommands: [Import.self, Export.self, Show.self, Erase.self, Restore.self])

  struct Import: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Replaces the imported numbers by those of a CSV file.",
      discussion: """
        At most \(NumberTable.limit) numbers. Every line is checked before anything changes; the first wrong line is reported, and the command exits with 2.

        EXAMPLES:
          trunkline users import numbers.csv --config gateway.yaml
          trunkline users import /dev/stdin --config gateway.yaml < numbers.csv
        """)
    @Argument(help: ArgumentHelp("CSV with the head line number,user.", valueName: "file")) var file: String
    @OptionGroup var source: SettingsSource

    func run() throws {
      let settings = try source.load()
      let table = try read()
      let directory = UserDirectory(settings.users, anyone: settings.anyUser)
      var (strangers, owned) = (0, 0)
      table.forEach { number, user in
        if !directory.contains(user) { strangers += 1 }
        if let owner = directory.owner(of: number), owner.user != user { owned += 1 }
      }
      do {
        try ImportedNumbers.replace(settings.numbers, with: table) { complain("stored \($0) of \(table.count) numbers") }
      } catch {
        complain("\(error)")
        throw ExitCode(1)
      }
      Console.line(
        "\(table.count) numbers of \(table.userCount) users are in \(settings.numbers); a running gateway loads them at SIGHUP (systemctl reload trunkline)"
      )
      if strangers > 0 {
        complain("warning: \(strangers) numbers ring no device: the configuration does not list their users; write users: any")
      }
      if owned > 0 { complain("warning: \(owned) numbers stay with the other user that the configuration gives them to") }
    }

    private func read() throws -> NumberTable {
      guard let handle = FileHandle(forReadingAtPath: file) else {
        complain("cannot read \(file): \(String(cString: strerror(errno)))")
        throw ExitCode(2)
      }
      do {
        return try NumberList.read {
          try handle.read(upToCount: 1 << 20) ?? Data()
        } progress: {
          complain("checked \($0) numbers")
        }
      } catch {
        complain("\(file): \(error)\nnothing was changed")
        throw ExitCode(2)
      }
    }
  }

  struct Export: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Prints the imported numbers as CSV, which import reads.",
      discussion: "The numbers of the configuration are not among them.")
    @OptionGroup var source: SettingsSource

    func run() throws {
      let table = try UsersCommand.imported(try source.load())
      var text = NumberList.head + "\n"
      table.forEach { number, user in
        text += NumberList.line(number, of: user)
        guard text.utf8.count > 1 << 16 else { return }
        Console.data(text)
        text = ""
      }
      Console.data(text)
    }
  }

  struct Show: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Prints the owner of a number, or the numbers of a user.",
      discussion: "It reads configuration and import from disk. Exits with 1 if there is no such number and no such user.")
    @Argument(help: ArgumentHelp("A number as a trunk sends it, or a user's id.", valueName: "user-or-number")) var what: String
    @OptionGroup var source: SettingsSource

    func run() throws {
      let settings = try source.load()
      guard let text = UserReport.text(of: what, in: settings, imported: try UsersCommand.imported(settings)) else {
        complain("there is neither a number nor a user \"\(what)\"")
        throw ExitCode(1)
      }
      Console.line(text)
    }
  }

  private static func imported(_ settings: Settings) throws -> NumberTable {
    do {
      return try ImportedNumbers.read(settings.numbers)
    } catch {
      complain("\(error)")
      throw ExitCode(1)
    }
  }
}

/// The output of `trunkline users show`.
enum UserReport {
  /// Nil: no such number and no such user exists.
  static func text(of what: String, in settings: Settings, imported: NumberTable) -> String? {
    let directory = UserDirectory(settings.users, anyone: settings.anyUser, imported: imported)
    let id = directory.owner(of: what)?.user ?? imported.owner(of: what)?.user ?? what
    let listed = settings.users.first { $0.id == id }
    guard listed != nil || imported.contains(user: id) else { return nil }
    let state =
      listed != nil
      ? "listed in the configuration"
      : settings.anyUser != nil
        ? "not listed: users: any holds" : "not listed: cannot log in, and its numbers ring no device; write users: any"
    var lines = ["user     \(id)", "         \(state)"]
    for number in listed?.numbers ?? [] { lines.append("number   \(number)  (configuration)") }
    for number in imported.numbers(of: id) {
      let owner = directory.owner(of: number)?.user
      let note =
        owner.map { $0 == id ? "imported" : "imported, but the configuration gives it to \($0)" } ?? "imported, rings no device"
      lines.append("number   \(number)  (\(note))")
    }
    return lines.joined(separator: "\n")
  }
}
