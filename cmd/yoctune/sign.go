package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/yoctune/yoctune/compiler/layer/sign"
	"github.com/yoctune/yoctune/internal/cli"
	"github.com/yoctune/yoctune/internal/infile"
	"github.com/yoctune/yoctune/internal/signature"
)

// passwordVariable is the environment variable with the password of a secret key.
const passwordVariable = "YOCTUNE_SIGN_PASSWORD"

// signOptions are the flags of sign.
type signOptions struct {
	key        string
	public     []string
	generate   bool
	noPassword bool
	verify     bool
}

func newSignCommand() *cobra.Command {
	var o signOptions
	cmd := &cobra.Command{
		Use:   "sign [LAYER|PLAN] --key FILE",
		Short: "Sign the plans of a layer, or verify their signatures",
		Long: `Sign each plan of a layer, or one plan file. The signature has minisign's format and is
written beside the plan, as plan.json.minisig. The layer installs it. A device that has a
key in /etc/yoctune/keys accepts only signed plans; runtime.keys in the configuration
installs keys there.

Rebuilding a layer keeps the signatures of plans that did not change and removes those of
plans that did.

With --generate the command creates a key pair: the secret key in FILE, and the public
key beside it, with the extension .pub. Keys made by minisign work too, and so do
signatures made by 'minisign -S'.

With --verify it verifies signatures, with the keys of the layer or those given with
--public, and exits with 3 when a device would refuse a plan.

The password of the secret key is read from ` + passwordVariable + `, or from the terminal.`,
		Example: `  yoctune sign --generate --key release.key
  yoctune sign build/meta-vision --key release.key
  yoctune sign build/meta-vision --verify
  yoctune sign plan.json --verify --public release.pub`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.generate && len(args) > 0:
				return cli.UsageError(fmt.Errorf("unexpected argument %q: --generate creates a key and signs nothing", args[0]))
			case o.generate:
				return generateKey(cmd, o)
			case len(args) == 0:
				return cli.UsageError(errors.New("missing argument: LAYER|PLAN"))
			case o.verify:
				return verifySignatures(cmd, args[0], o)
			}
			return signPlans(cmd, args[0], o)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.key, "key", "k", "", "`FILE` with the secret key; with --generate, where to write it")
	f.StringArrayVar(&o.public, "public", nil, "`KEY` to verify with: a file, or the public key itself; may be repeated")
	f.BoolVar(&o.generate, "generate", false, "create a key pair")
	f.BoolVar(&o.noPassword, "no-password", false, "with --generate: leave the secret key unencrypted")
	f.BoolVar(&o.verify, "verify", false, "verify signatures instead of signing")
	cmd.MarkFlagsMutuallyExclusive("generate", "verify")
	cmd.MarkFlagsMutuallyExclusive("key", "verify")
	return cmd
}

// maxKey bounds the file of a secret key, in bytes.
const maxKey = 64 << 10

func signPlans(cmd *cobra.Command, path string, o signOptions) error {
	if o.key == "" {
		return cli.UsageError(errors.New("--key FILE is required: the secret key; --generate creates one"))
	}
	plans, err := sign.Find(path)
	if err != nil {
		return err
	}
	file, err := infile.Read(o.key, maxKey)
	if err != nil {
		return fmt.Errorf("reading the secret key: %w", err)
	}
	password := ""
	if signature.Encrypted(file) {
		if password, err = askPassword("Password of " + o.key + ": "); err != nil {
			return err
		}
	}
	secret, err := signature.Open(file, password)
	if err != nil {
		return fmt.Errorf("%s: %w", o.key, err)
	}
	// Sign all plans or none: a layer with some signed plans cannot be released.
	for _, p := range plans {
		if err := p.Accepts(secret.Public()); err != nil {
			return fmt.Errorf("%s: %w", p.File, err)
		}
	}
	out := cli.NewPrinter(cmd)
	for _, p := range plans {
		if err := p.Sign(secret); err != nil {
			return err
		}
		signed{p.Doc.Target, p.Signature(), secret.Public().ID(), p.Comment(), ""}.write(out)
	}
	writeSignSummary(out, len(plans), 0)
	return nil
}

// signed is a plan with its signature; Refused is why a device refuses the plan.
type signed struct {
	Target  string `json:"target"`
	File    string `json:"file"`
	Key     string `json:"key"`
	Comment string `json:"comment"`
	Refused string `json:"refused,omitempty"`
}

func (s signed) write(p cli.Printer) {
	switch {
	case p.JSON:
		p.Line("signature", s)
	case s.Refused != "":
		p.Printf("refused: %s\n", s.Refused)
	default:
		p.Printf("%s: %s, key %s\n", s.File, s.Comment, s.Key)
	}
}

func writeSignSummary(p cli.Printer, plans, refused int) {
	if p.JSON {
		p.Summary("sign", struct {
			Plans   int `json:"plans"`
			Refused int `json:"refused"`
		}{plans, refused})
	}
}

func verifySignatures(cmd *cobra.Command, path string, o signOptions) error {
	plans, err := sign.Find(path)
	if err != nil {
		return err
	}
	var by []signature.Key
	for _, text := range o.public {
		k, err := publicKey(text)
		if err != nil {
			return err
		}
		by = append(by, k)
	}
	out, refused := cli.NewPrinter(cmd), 0
	for _, p := range plans {
		who, err := p.Verify(by)
		if errors.Is(err, sign.ErrNoKey) {
			return cli.UsageError(fmt.Errorf("%w; give one with --public", err))
		}
		line := signed{p.Doc.Target, p.Signature(), who.KeyID, who.Comment, ""}
		if err != nil {
			refused++
			line.Refused = err.Error()
		}
		line.write(out)
	}
	writeSignSummary(out, len(plans), refused)
	return cli.Answer(refused == 0)
}

// publicKey reads a key from the text itself, or from the file that it names.
func publicKey(text string) (signature.Key, error) {
	if _, err := os.Lstat(text); errors.Is(err, fs.ErrNotExist) {
		k, err := signature.ParseKey([]byte(text))
		if err != nil {
			return k, fmt.Errorf("--public %s: neither a file nor a key: %w", text, err)
		}
		return k, nil
	}
	return sign.ReadKey(text)
}

func generateKey(cmd *cobra.Command, o signOptions) error {
	if o.key == "" {
		return cli.UsageError(errors.New("--key FILE is required: where to write the secret key, such as release.key"))
	}
	base := o.key
	if i := strings.LastIndexByte(base, '.'); i > strings.LastIndexByte(base, '/')+1 {
		base = base[:i]
	}
	public := base + ".pub"
	if public == o.key {
		return cli.UsageError(fmt.Errorf("--key %s: the public key would overwrite the secret one; choose another extension, such as .key", o.key))
	}
	password := ""
	if !o.noPassword {
		var err error
		if password, err = newPassword(); err != nil {
			return err
		}
	}
	secret, err := signature.Generate()
	if err != nil {
		return err
	}
	text, err := secret.File(password)
	if err != nil {
		return err
	}
	if err := createFile(o.key, text, 0o600); err != nil {
		return err
	}
	if err := createFile(public, secret.Public().File(), 0o644); err != nil {
		return errors.Join(err, os.Remove(o.key))
	}
	p := cli.NewPrinter(cmd)
	if p.JSON {
		p.Summary("sign", struct {
			Secret string `json:"secret"`
			Public string `json:"public"`
			Key    string `json:"key"`
		}{o.key, public, secret.Public().String()})
	} else {
		p.Printf("%s: secret key; keep it off development machines and out of version control\n%s: public key %s\n\nAdd to the configuration:\n\n\truntime: keys: release: %q\n",
			o.key, public, secret.Public().ID(), secret.Public())
	}
	return nil
}

// createFile writes a new file. It never replaces one: a lost key cannot be recovered.
func createFile(name string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists; move it away, or choose another name", name)
	} else if err != nil {
		return fmt.Errorf("writing a key: %w", err)
	}
	_, err = f.Write(data)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", name, err), os.Remove(name))
	}
	return nil
}

func newPassword() (string, error) {
	password, err := askPassword("Password for the new key: ")
	if err != nil {
		return "", err
	}
	if _, given := os.LookupEnv(passwordVariable); !given {
		again, err := askPassword("Repeat the password: ")
		if err != nil {
			return "", err
		}
		if again != password {
			return "", errors.New("the two passwords differ; no key was created")
		}
	}
	if password == "" {
		return "", errors.New("the password is empty; --no-password creates a key without one")
	}
	return password, nil
}

// askPassword reads the password from the environment, or from the terminal without
// showing it.
func askPassword(prompt string) (string, error) {
	if p, ok := os.LookupEnv(passwordVariable); ok {
		return p, nil
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return "", fmt.Errorf("the key has a password, and there is no terminal to enter it; set %s", passwordVariable)
	}
	defer tty.Close()
	fmt.Fprint(tty, prompt)
	b, err := term.ReadPassword(int(tty.Fd()))
	fmt.Fprintln(tty)
	if err != nil {
		return "", fmt.Errorf("reading the password: %w", err)
	}
	return string(b), nil
}
