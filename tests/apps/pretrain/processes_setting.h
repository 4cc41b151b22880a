// Runs of several processes under mpirun, and what can be done to one of them.
#pragma once
#include <future>
#include <sstream>

#include "apps/pretrain/pretrain_setting.h"

namespace support {

/// mpirun starts a script for every process, which runs the program, keeps its number, its exit code and what it says,
/// and itself always ends well, so that the launcher leaves the other processes to themselves.
struct ProcessesSetting : PretrainSetting {
  using PretrainSetting::PretrainSetting;
  /// Without binding, and with the other processes left alone when one of them ends badly.
  std::string mpirun = "mpirun --allow-run-as-root --oversubscribe --bind-to none --enable-recovery";

  /// "" or why there can be no such runs here.
  static std::string missing() {
    if (!std::filesystem::exists(bertrand::paths::binary + "/libbertrand_mpi.so"))
      return "libbertrand_mpi.so was not built";
    if (std::system("command -v mpirun >/dev/null") != 0) return "there is no mpirun";
    return "";
  }

  /// Writes the script for a run of these flags.
  std::string script(const std::string& output, const std::vector<std::string>& more) const {
    std::string command = bertrand::paths::binary + "/pretrain";
    for (const std::string& flag : flags(output, more)) command += " '" + flag + "'";
    return script_of(output, command);
  }
  /// The same for another command of the shell.
  std::string script_of(const std::string& output, const std::string& command) const {
    const std::string of_rank = (directory / output).string() + ".$OMPI_COMM_WORLD_RANK";
    write_text(directory / (output + ".sh"), command + " >" + of_rank + ".out 2>" + of_rank + ".error &\necho $! >" +
                                                 of_rank + ".pid\nwait $!\necho $? >" + of_rank + ".code\n");
    return directory / (output + ".sh");
  }
  /// Starts it and waits until every process has ended, for five minutes at most.
  void launch(const std::string& script, int processes) const {
    const std::string command = "timeout 300 env " + mpirun + " -n " + std::to_string(processes) + " sh " + script;
    const int status = std::system((command + " >" + (directory / "mpirun.log").string() + " 2>&1").c_str());
    CHECK_MESSAGE(WEXITSTATUS(status) != 124, "mpirun was ended after five minutes");
  }
  void run_processes(const std::string& output, int processes, const std::vector<std::string>& more) const {
    launch(script(output, more), processes);
  }
  /// Returns when it is so, or when nothing is running any more.
  static void wait_until(const std::future<void>& running, const std::function<bool()>& is_so) {
    CHECK(soon([&] { return is_so() || running.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }));
  }
  /// Starts it, calls `disturb` once steps are logged, and waits. Returns the seconds from there to the end.
  double disturb(const std::string& output, int processes, const std::vector<std::string>& more,
                 const std::function<void()>& disturb) const {
    const std::string file_name = script(output, more);
    const auto running = std::async(std::launch::async, [&] { launch(file_name, processes); });
    wait_until(running, [&] { return has_logged(output); });
    disturb();
    const auto begin = std::chrono::steady_clock::now();
    running.wait();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  void send(const std::string& output, int rank, int signal) const {
    kill(std::stoi(of_rank(output, rank, "pid")), signal);
  }

  /// "" if the process has not begun to write it.
  std::string of_rank(const std::string& output, int rank, const std::string& what) const {
    return read_if_there(directory / (output + "." + std::to_string(rank) + "." + what));
  }
  /// Without those of Open MPI, which reports a message that it could not read as "[host:pid] Read -1, …".
  std::vector<std::string> own_lines(const std::string& output, int rank, const std::string& what) const {
    std::vector<std::string> lines;
    std::istringstream text(of_rank(output, rank, what));
    for (std::string line; std::getline(text, line);)
      if (!line.starts_with("[")) lines.push_back(line);
    return lines;
  }
  /// -1 if it was killed with its script.
  int code(const std::string& output, int rank) const {
    const std::string text = of_rank(output, rank, "code");
    return text.empty() ? -1 : std::stoi(text);
  }
};

}  // namespace support
