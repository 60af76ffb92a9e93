# Makes a snapshot of a release with GoReleaser and installs each kind of package from files: the archive, the Debian package, npm's, the
# formula, the image, and the module by its tag. What this machine has no program for is named at the end, and is not tried.
set -eu
command -v goreleaser >/dev/null || { echo "release.sh: goreleaser is missing: go install github.com/goreleaser/goreleaser/v2@v2.14.0" >&2; exit 2; }
skip=publish,announce,validate
command -v cyclonedx-gomod >/dev/null || skip=$skip,sbom
goreleaser release --snapshot --clean --skip=$skip
top=$PWD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
version=$(sed -n 's/.*"version":"\([^"]*\)".*/\1/p' dist/metadata.json)
arch=$(go env GOARCH)
left=

# says checks what an installed program says of itself.
says() { # PROGRAM VERSION ORIGIN
	text=$("$1" version)
	case $text in
	"condense $2 "*"from $3"*) echo "installed: $(echo $text)" ;;
	*) echo "release.sh: $1 says: $text; want version $2, from $3" >&2; exit 1 ;;
	esac
	(cd "$dir" && "$1" run "$top/testdata/$session" --force -o "$dir/shorter.json" >/dev/null && test -s "$dir/shorter.json")
}
session=traces/tau-airline--task2-trial1.json.gz

mkdir "$dir/archive" "$dir/deb"
tar -xzf "dist/condense_${version}_linux_$arch.tar.gz" -C "$dir/archive"
says "$dir/archive/condense" "v$version" "a release"
sum=$(sha256sum <"dist/condense_${version}_linux_$arch.tar.gz" | cut -d' ' -f1)
grep -q "^$sum  condense_${version}_linux_$arch.tar.gz$" dist/checksums.txt

deb=$(ls dist/*_"$arch".deb)
if ! command -v dpkg >/dev/null; then
	left="$left Debian"
elif [ "$(id -u)" = 0 ]; then
	dpkg --install "$deb"
	says /usr/bin/condense "v$version" "a release"
	test -s /usr/share/man/man1/condense.1 && test -s /usr/share/bash-completion/completions/condense
	! command -v systemd-analyze >/dev/null || systemd-analyze verify /usr/lib/systemd/system/condense.service
	dpkg --purge condense
	test ! -e /usr/bin/condense
else
	dpkg-deb --extract "$deb" "$dir/deb" # only root installs
	says "$dir/deb/usr/bin/condense" "v$version" "a release"
fi

if command -v npm >/dev/null; then
	node deploy/npm/pack.mjs "$version" dist/artifacts.json "$dir/npm"
	system=linux-$(node -p process.arch)
	(cd "$dir/npm" && npm pack --silent ./condense "./$system" >/dev/null)
	npm install --silent --offline --ignore-scripts --no-audit --no-fund --prefix "$dir/global" -g "$dir"/npm/*.tgz
	says "$dir/global/bin/condense" "v$version" "npm"
else
	left="$left npm"
fi

# go install by a tag, of a copy of the repository whose address is the real one.
tag=v0.0.1-try.1
git clone --quiet --bare . "$dir/condense.git"
git -C "$dir/condense.git" tag $tag
GOBIN="$dir/gobin" GOFLAGS= GOPRIVATE=github.com/condensehq/condense GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$dir/condense.git.insteadOf" \
	GIT_CONFIG_VALUE_0=https://github.com/condensehq/condense GIT_ALLOW_PROTOCOL=file:https GOMODCACHE="$dir/modules" \
	go install -modcacherw github.com/condensehq/condense/cmd/condense@$tag
says "$dir/gobin/condense" $tag "go install"

if command -v brew >/dev/null; then
	git archive --prefix=condense/ -o "$dir/condense.tar.gz" HEAD
	mkdir -p "$dir/tap"
	sed "s#^  url .*#  url \"file://$dir/condense.tar.gz\"\n  version \"$version\"#; s/@SHA256@/$(sha256sum <"$dir/condense.tar.gz" | cut -d' ' -f1)/" \
		deploy/homebrew/condense.rb >"$dir/tap/condense.rb"
	brew tap-new --no-git try/condense && cp "$dir/tap/condense.rb" "$(brew --repository try/condense)/Formula/"
	brew install --build-from-source try/condense/condense && brew test try/condense/condense
	says "$(brew --prefix)/bin/condense" "v$version" Homebrew
else
	left="$left Homebrew"
fi

if docker info >/dev/null 2>&1; then
	docker build --quiet -f deploy/Dockerfile --build-arg VERSION="v$version" -t condense:try .
	docker run --rm condense:try version | grep "^condense v$version "
else
	left="$left image"
fi
for system in windows_amd64.zip windows_arm64.zip darwin_amd64.tar.gz darwin_arm64.tar.gz linux_arm64.tar.gz; do
	test -s "dist/condense_${version}_$system"
done
echo "built and not run: Windows, macOS, the other processor"
[ -z "$left" ] || echo "not tried, without the programs for it:$left"
