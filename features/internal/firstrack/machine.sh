# Enters a machine whose files are those of this one, where what is written is thrown away, and
# runs there what is read from file descriptor 4: commands that end with a zero byte. What is
# answered on 3 for each is what it printed, if it begins with a question mark, a zero byte,
# its exit code, and a line end.
#
# Usage: bash machine.sh OVER REPOSITORY DIRECTORY…: OVER is an empty folder. Commands are run in
# /srv, where the repository is the folder "ingot". Directories may be on file systems of their own.
set -euo pipefail
over=$1
repository=$2
shift 2
mount -t tmpfs tmpfs "$over"
layers=0
layer() { # layer FROM TO: the files of FROM in TO
	layers=$((layers + 1))
	mkdir -p "$over/$layers/upper" "$over/$layers/work" "$2"
	mount -t overlay overlay -o "lowerdir=$1,upperdir=$over/$layers/upper,workdir=$over/$layers/work" "$2"
}
root=$over/root
layer / "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
for directory; do layer "$directory" "$root$directory"; done

# What is installed is taken as it is: a newer version would have to be fetched.
echo 'APT::Get::Upgrade "false";' >"$root/etc/apt/apt.conf.d/99first-rack"
# Nothing is left of what was done here before.
rm -rf "$root$HOME/.gitconfig" "$root$HOME/.config/git" "$root/var/lib/ingot" "$root/usr/share/ingot" "$root/usr/local/bin/ingot" "$root"/srv/*
layer "$repository" "$root/srv/ingot"

exec chroot "$root" env -C /srv bash -c '
	while IFS= read -r -d "" command <&4; do
		case $command in
		"?"*) eval "${command#?}" </dev/null >&3 4<&- && code=0 || code=$? ;;
		*) eval "$command" </dev/null 3>&- 4<&- && code=0 || code=$? ;;
		esac
		printf "\0%d\n" "$code" >&3
	done
'
