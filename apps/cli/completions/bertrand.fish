# Completion for `bertrand`: the commands whose completions lie beside this file, each with its own.
set -g __bertrand_folder (path dirname (status filename))
function __bertrand_commands
    for file in $__bertrand_folder/bertrand-*.fish
        string replace -r '.*/bertrand-(.*)\.fish$' '$1' $file
    end
end
function __bertrand_command_complete
    set -l words (commandline -opc)
    complete -C "bertrand-"(string join ' ' -- (string escape -- $words[2..]) (commandline -ct | string escape -n))
end
complete -c bertrand -f
complete -c bertrand -n 'test (count (commandline -opc)) -eq 1' -a '(__bertrand_commands)'
complete -c bertrand -n 'test (count (commandline -opc)) -gt 1' -a '(__bertrand_command_complete)'
